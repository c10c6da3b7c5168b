

def test_an_initializer_may_need_to_be_told_that_there_are_no_parts(session):
    def start(shape, dtype, partition_info):
        return tf.fill(shape, tf.cast(3.0 if partition_info is None else 4.0, dtype))

    whole = tf.get_variable("whole", [2], initializer=start)
    session.run(whole.initializer)
    assert session.run(whole).tolist() == [3.0, 3.0]
