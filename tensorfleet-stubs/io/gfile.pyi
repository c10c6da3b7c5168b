# Written by tools/make_stubs.py.
from tensorfleet.base.files import GFile as GFile
from tensorfleet.base.files import copy as copy
from tensorfleet.base.files import exists as exists
from tensorfleet.base.files import glob as glob
from tensorfleet.base.files import isdir as isdir
from tensorfleet.base.files import listdir as listdir
from tensorfleet.base.files import makedirs as makedirs
from tensorfleet.base.files import mkdir as mkdir
from tensorfleet.base.files import remove as remove
from tensorfleet.base.files import rename as rename
from tensorfleet.base.files import rmtree as rmtree
from tensorfleet.base.files import stat as stat
from tensorfleet.base.files import walk as walk
