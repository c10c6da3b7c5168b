# Written by tools/make_stubs.py.
from tensorfleet.base.protos.manifest_pb2 import AssetFile as AssetFile
from tensorfleet.base.protos.manifest_pb2 import ClassificationSignature as ClassificationSignature
from tensorfleet.base.protos.manifest_pb2 import GenericSignature as GenericSignature
from tensorfleet.base.protos.manifest_pb2 import RegressionSignature as RegressionSignature
from tensorfleet.base.protos.manifest_pb2 import Signature as Signature
from tensorfleet.base.protos.manifest_pb2 import Signatures as Signatures
from tensorfleet.base.protos.manifest_pb2 import TensorBinding as TensorBinding
