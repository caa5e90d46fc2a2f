//! Tests that run again in a process of their own.

use std::env;
use std::process::Command;

/// The command that runs the test `name` of the calling program, such as `module::test`, and no other.
///
/// # Panics
/// When the program has no such test: a command that runs no test would end well.
pub fn test_alone(name: &str) -> Command {
    let program = env::current_exe().expect("a test runs");
    let list = Command::new(&program).args(["--exact", name, "--list"]).output().expect("it starts");
    let list = String::from_utf8_lossy(&list.stdout);
    assert!(list.lines().any(|line| line == format!("{name}: test")), "no test is called {name}: {list}");
    let mut alone = Command::new(program);
    alone.args(["--exact", name, "--nocapture"]);
    alone
}

#[cfg(test)]
mod tests {
    use super::test_alone;

    #[test]
    fn a_test_is_found_by_its_whole_name() {
        drop(test_alone("alone::tests::a_test_is_found_by_its_whole_name"));
    }

    #[test]
    #[should_panic(expected = "no test is called a_test_is_found")]
    fn a_name_without_its_module_is_refused() {
        drop(test_alone("a_test_is_found_by_its_whole_name"));
    }
}
