"""The actions of `tensorfleet debug`."""
