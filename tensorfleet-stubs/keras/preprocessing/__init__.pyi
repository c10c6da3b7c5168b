# Written by tools/make_stubs.py.
from tensorfleet.keras.preprocessing import image as image
from tensorfleet.keras.preprocessing import sequence as sequence
from tensorfleet.keras.preprocessing import text as text
