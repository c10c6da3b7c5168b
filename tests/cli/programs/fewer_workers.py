"""A cluster of one worker, written out."""

import tensorflow as tf

tf.app.flags.DEFINE_string("job_name", "", "ps or worker")
tf.app.flags.DEFINE_integer("task_index", 0, "which of the job's tasks")
FLAGS = tf.app.flags.FLAGS

hosts = {"ps": ["author-1:2222"], "worker": ["author-2:2222"]}
server = tf.train.Server(hosts, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
else:
    with tf.Session(server.target) as sess:
        print("worked:", sess.run(tf.constant(True)))
