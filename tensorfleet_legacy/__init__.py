"""TensorFlow names that few programs use: Keras, estimators, `tf.contrib`, `tf.python`, names from before 1.0.

Each module has the name of the TensorFlow module it stands for. `import tensorfleet` reads `index.txt` of this
package and imports a module when one of its names is first used.
"""

# A module of this package may be imported first, before the names of the core are there.
import tensorfleet  # noqa: F401
