"""Effects in the order of the program, as `auto_control_deps` puts them."""

import tensorfleet as tf

auto_control_deps = tf.python.framework.auto_control_deps


def test_a_block_happens_in_its_order_and_its_results_wait_for_all_of_it(session):
    variable = tf.Variable(1.0, use_resource=True)
    session.run(variable.initializer)
    with auto_control_deps.AutomaticControlDependencies() as block:
        variable.assign(variable + 1)
        variable.assign(2 * variable)
        value = block.mark_as_return(variable.read_value())
        early = block.mark_as_return(tf.constant(7))
        variable.assign_add(100.0)
    assert session.run([value, early]) == [4.0, 7]
    assert session.run(variable) == 104.0


def test_a_function_whose_results_wait_for_what_it_does(session):
    variable = tf.Variable(1.0, use_resource=True)
    session.run(variable.initializer)

    @auto_control_deps.automatic_control_dependencies
    def change():
        variable.assign(variable + 1)
        return variable.read_value(), {"x": tf.constant(3)}

    assert session.run(change()) == (2.0, {"x": 3})
