//! Workers that die, hang, print, leak memory or raise exceptions.

use std::process::Command;
use std::time::Duration;

use foveate_core::{Action, Env, EnvError, Fact, Step};

use crate::common::{python, toy, try_toy};

/// Plays a whole episode with seed 7 by a fixed rule.
fn episode(env: &mut dyn Env) -> Result<Vec<Step>, EnvError> {
    env.reset(Some(7));
    let mut all = vec![];
    loop {
        let step = env.step(Action::Continuous(&[(all.len() as f64).cos()]))?;
        all.push(step);
        if step.is_over() {
            return Ok(all);
        }
    }
}

/// Causes the failure `how` in step 5, once; the episode must equal that of an undisturbed world, and the
/// notice must contain `part`.
#[track_caller]
fn once(how: &str, replaced: u64, part: &str) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mark = dir.path().join("broken");
    let mark = serde_json::to_string(&mark).expect("text");
    let how_json = format!("\"{how}\"");
    let options = [("arg.how", &*how_json), ("arg.once", &*mark), ("timeout", "2")];
    let (gym, told) = try_toy("Breaks", &options);
    let mut env = foveate_gym::GymWorld::new(gym.expect("it can be made"));
    let expect = episode(&mut toy("Toy", &[])).expect("nothing breaks");
    assert_eq!(episode(&mut env).expect("it goes on"), expect, "{how}");
    assert_eq!(env.gym().replaced(), replaced, "{how}");
    let told = told.lock().expect("no one panicked").join("\n");
    assert!(told.contains(part), "{how}: {told}");
    if replaced > 0 {
        assert!(told.contains("after step 4 of the episode with seed 7; a new worker"), "{told}");
    }
}

#[test]
fn what_fails_once_leaves_no_trace_in_the_result() {
    if !python() {
        return;
    }
    once("raise", 1, "ValueError: the toy broke");
    once("raise", 1, "foveate_toys/__init__.py\", line");
    once("exit", 1, "the worker left with exit code 3");
    once("sys_exit", 1, "SystemExit: leaving");
    once("segfault", 1, "the worker was ended by signal 11 (SIGSEGV)");
    once("hang", 1, "did not answer for 2 s");
    once("hang_in_c", 1, "did not answer for 2 s");
}

#[test]
fn what_does_no_harm_is_no_failure() {
    if !python() {
        return;
    }
    for how in ["print", "close", "read"] {
        once(how, 0, "");
    }
}

#[test]
fn what_fails_again_is_an_error_that_says_where() {
    if !python() {
        return;
    }
    for (how, parts) in [
        ("raise", ["it raised ValueError: the toy broke", "again with a new worker"]),
        ("exit", ["exit code 3", "after step 4 of the episode with seed 7"]),
    ] {
        let (gym, told) = try_toy("Breaks", &[("arg.how", &format!("\"{how}\""))]);
        let mut env = foveate_gym::GymWorld::new(gym.expect("it can be made"));
        let said = episode(&mut env).expect_err("it breaks every time").to_string();
        for part in parts {
            assert!(said.contains(part), "{said}");
        }
        assert!(said.contains("the task `check-world`") && !said.contains('\n'), "{said}");
        assert_eq!(env.step(Action::Continuous(&[0.0])).expect_err("still").to_string(), said);
        let told = told.lock().expect("no one panicked").concat();
        assert_eq!(told.matches("Traceback").count(), usize::from(how == "raise"), "{told}");
        assert_eq!(env.gym().replaced(), if how == "raise" { 2 } else { 6 });
        // Another episode may succeed, up to the same step.
        env.reset(Some(8));
        for _ in 0..4 {
            env.step(Action::Continuous(&[0.0])).expect("it has not come to step 5");
        }
    }
}

/// Bytes of worker output that Foveate keeps.
#[cfg(target_os = "linux")]
fn log_bytes() -> u64 {
    let files = std::fs::read_dir("/proc/self/fd").expect("Linux").flatten().map(|entry| entry.path());
    let logs = files.filter(|path| {
        std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().contains("memfd:foveate-log"))
    });
    logs.filter_map(|path| std::fs::metadata(path).ok()).map(|data| data.len()).max().unwrap_or(0)
}

#[test]
#[cfg(target_os = "linux")]
fn what_is_printed_takes_no_memory_and_its_end_is_shown() {
    if !python() {
        return;
    }
    let (gym, told) = try_toy("Prints", &[]);
    let mut env = foveate_gym::GymWorld::new(gym.expect("it can be made"));
    env.reset(Some(1));
    for _ in 0..11 {
        env.step(Action::Continuous(&[0.0])).expect("printing does no harm");
        let bytes = log_bytes();
        assert!(bytes > 0 && bytes <= 16 << 10, "{bytes} bytes are kept");
    }
    env.step(Action::Continuous(&[0.0])).expect_err("it leaves in step 12");
    let told = told.lock().expect("no one panicked").concat();
    assert!(told.contains("xxx\nstep 12\nfoveate: the worker left with exit code 3"), "{}", told.len());
    assert!(told.len() < 10 * (16 << 10), "{}", told.len());
}

#[test]
fn an_environment_is_closed_once_whatever_ended_its_worker() {
    if !python() {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let report = dir.path().join("report");
    let json = serde_json::to_string(&report).expect("text");
    let written = || std::fs::read_to_string(&report).unwrap_or_default();
    let mut env = toy("Closes", &[("arg.report", &*json)]);
    env.reset(Some(1));
    let copy = env.boxed_clone();
    assert_eq!(written(), "");
    drop(env);
    drop(copy);
    assert_eq!(written(), "close\nexit\n", "dropped");
    // The environment is closed even if it cannot be used.
    let wrapper = ("gym_wrapper", "no_such_module.A");
    try_toy("Closes", &[("arg.report", &*json), wrapper]).0.expect_err("no such wrapper");
    assert_eq!(written(), "close\nexit\n".repeat(2), "refused");
}

/// A step result that is not a valid number or flag is an error that names the value and the step; there is
/// no retry.
#[test]
fn what_is_no_number_and_no_flag_is_refused() {
    if !python() {
        return;
    }
    let play = |what: &str, value: &str| {
        let (what, value) = (format!("\"{what}\""), serde_json::to_string(value).expect("text"));
        let (gym, told) = try_toy("Odd", &[("arg.what", &*what), ("arg.value", &*value)]);
        let mut env = foveate_gym::GymWorld::new(gym.expect("it can be made"));
        let done = episode(&mut env);
        let told = told.lock().expect("no one panicked").len();
        (done.map_err(|error| error.to_string()), told)
    };
    for (what, value, part) in [
        ("reward", "'1.5'", "'1.5' (str) is no reward; step() must give one number"),
        ("reward", "None", "None (NoneType) is no reward"),
        ("reward", "[1.0]", "[1.0] (list) is no reward"),
        ("reward", "np.zeros(2)", "an array of shape (2,) is no reward"),
        ("reward", "1j", "1j (complex) is no reward"),
        ("reward", "float('nan')", "the reward is NaN in step 5"),
        ("reward", "-np.inf", "the reward is -inf in step 5"),
        ("terminated", "'False'", "terminated is 'False' (str); step() must give True or False"),
        ("terminated", "None", "terminated is None (NoneType)"),
        ("truncated", "2", "truncated is 2 (int)"),
        ("truncated", "np.zeros(3, bool)", "truncated is an array of shape (3,)"),
        ("x", "np.nan", "observation[1] is NaN after step 5"),
        ("x", "-np.inf", "observation[1] is -inf after step 5"),
        ("x0", "np.inf", "observation[1] is inf after step 0"),
    ] {
        let (done, told) = play(what, value);
        let said = done.expect_err(value);
        assert!(said.starts_with("gym:foveate_toys:Toys/Odd-v0: "), "{said}");
        assert!(said.contains(part) && said.contains("of the episode with seed 7"), "{said}");
        assert!(!said.contains('\n') && told == 0, "{said}");
    }
    let (plain, _) = play("nothing", "None");
    let plain = plain.expect("nothing is odd");
    for (what, value) in [
        ("reward", "1"),
        ("reward", "True"),
        ("reward", "np.float32(1)"),
        ("reward", "np.int64(1)"),
        ("reward", "np.array(1.0)"),
        ("reward", "np.array([[1]])"),
        ("terminated", "np.bool_(False)"),
        ("terminated", "0"),
        ("truncated", "np.array([False])"),
    ] {
        let mut expect = plain.clone();
        if what == "reward" {
            expect[4].reward = 1.0;
        }
        assert_eq!(play(what, value).0, Ok(expect), "{what} {value}");
    }
    let (gym, _) = try_toy("OddPicture", &[]);
    let said = episode(&mut foveate_gym::GymWorld::new(gym.expect("it can be made"))).expect_err("step 5");
    assert!(said.to_string().contains("picture in its observation has a NaN"), "{said}");
}

/// A world that could not begin returns the reason from every method.
#[test]
fn what_failed_to_begin_says_why_when_it_is_drawn() {
    if !python() {
        return;
    }
    let (gym, told) = try_toy("Odd", &[("arg.what", "\"reset\"")]);
    let mut env = foveate_gym::GymWorld::new(gym.expect("it can be made"));
    env.reset(Some(1));
    let said =
        env.render(&mut foveate_core::ImageBuf::black(60, 40)).expect_err("it cannot begin").to_string();
    assert!(said.contains("it raised ValueError: it cannot begin"), "{said}");
    assert_eq!(told.lock().expect("no one panicked").concat().matches("Traceback").count(), 1);
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_is_left_when_a_keeper_is_killed() {
    if !python() {
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let report = dir.path().join("report");
    let json = serde_json::to_string(&report).expect("text");
    let mut env = toy("Polite", &[("arg.report", &*json), ("arg.end", "\"nothing\"")]);
    env.reset(Some(1));
    let uses = || -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(&report).expect("the toy writes it");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let keeper = uses()[0]["keeper"].to_string();
    // Waits until the keeper has recorded the shared memory.
    std::thread::sleep(Duration::from_millis(600));
    assert!(Command::new("kill").args(["-9", &keeper]).status().expect("kill runs").success());
    // The worker ends together with its world.
    soon_gone(&[uses()[0]["pids"][0].as_u64().expect("a number")]);
    env.step(Action::Continuous(&[0.0])).expect("a new worker goes on");
    assert_eq!((env.gym().replaced(), uses().len()), (1, 2));
    drop(env);
    for uses in uses() {
        let pids: Vec<u64> =
            uses["pids"].as_array().expect("a list").iter().filter_map(serde_json::Value::as_u64).collect();
        assert!(pids.len() == 3 && pids.iter().all(|&pid| !alive(pid)), "{uses}");
        for path in uses["paths"].as_array().expect("a list") {
            assert!(!std::path::Path::new(path.as_str().expect("text")).exists(), "{path}");
        }
    }
}

#[test]
fn a_worker_that_grows_is_replaced() {
    if !python() {
        return;
    }
    // 120 MB per episode; each must begin with a fresh worker.
    let (gym, _) = try_toy("Leaks", &[("memory", "150")]);
    let mut env = foveate_gym::GymWorld::new(gym.expect("it can be made"));
    let first = episode(&mut env).expect("fine");
    for expect in 1..4 {
        assert_eq!(episode(&mut env).expect("fine"), first);
        assert_eq!(env.gym().replaced(), expect);
    }
}

fn alive(pid: u64) -> bool {
    // A process that ended but was not reaped by its new parent does not count as alive.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|text| !text.contains(") Z "))
}

#[track_caller]
fn soon_gone(pids: &[u64]) {
    // An environment has five seconds to close itself.
    for _ in 0..3000 {
        if pids.iter().all(|&pid| !alive(pid)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("still there: {:?}", pids.iter().filter(|&&pid| alive(pid)).collect::<Vec<_>>());
}

/// Process ids of a worker of `Children` and of the program that it started.
fn family(env: &dyn Env) -> Vec<u64> {
    let Fact::Named(facts) = env.state() else { panic!("facts") };
    facts.iter().filter_map(|(_, fact)| if let Fact::Count(pid) = fact { Some(*pid) } else { None }).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_outlives_a_world_or_a_worker() {
    if !python() {
        return;
    }
    let mut env = toy("Children", &[]);
    env.reset(Some(1));
    let pids = family(&env);
    assert!(pids.len() == 2 && pids.iter().all(|&pid| alive(pid)));
    drop(env);
    soon_gone(&pids);

    let mut env = toy("Children", &[]);
    env.reset(Some(1));
    let first = family(&env);
    // Only the worker is killed; the processes that it started must end too.
    assert!(Command::new("kill").args(["-9", &first[1].to_string()]).status().expect("kill runs").success());
    env.step(Action::Continuous(&[0.0])).expect("a new worker goes on");
    soon_gone(&first);
    assert_eq!(env.gym().replaced(), 1);
}

/// The test below starts this one as a separate process and kills it.
#[test]
#[cfg(target_os = "linux")]
#[expect(clippy::print_stdout, reason = "that is how it talks to the test")]
fn a_parent_to_be_killed() {
    if std::env::var_os("FOVEATE_TEST_VICTIM").is_none() {
        return;
    }
    let hang = std::env::var("FOVEATE_TEST_VICTIM").is_ok_and(|how| how == "hang");
    let mut env = toy("Children", &[]);
    env.reset(Some(1));
    let mut other = toy("Breaks", &[("arg.how", "\"hang_in_c\"")]);
    other.reset(Some(1));
    println!("family {:?}", family(&env));
    if hang {
        for _ in 0..5 {
            let _ = other.step(Action::Continuous(&[0.0]));
        }
    }
    std::thread::sleep(Duration::from_secs(100));
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_outlives_a_parent_that_is_killed() {
    use std::io::{BufRead, BufReader};

    if !python() {
        return;
    }
    for how in ["idle", "hang"] {
        let mut victim = foveate_toy::test_alone("failures::a_parent_to_be_killed")
            .env("FOVEATE_TEST_VICTIM", how)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("it starts");
        let out = BufReader::new(victim.stdout.take().expect("piped"));
        let line = out.lines().map_while(Result::ok).find(|line| line.contains("family ["));
        let line = line.expect("it says who its workers are");
        let pids: Vec<u64> =
            line.split(['[', ']', ',']).filter_map(|word| word.trim().parse().ok()).collect();
        assert_eq!(pids.len(), 2, "{line}");
        let groups = children_of(victim.id());
        assert!(groups.len() >= 2, "keepers are its children: {groups:?}");
        std::thread::sleep(Duration::from_millis(300));
        victim.kill().expect("it can be killed");
        victim.wait().expect("it was killed");
        soon_gone(&pids);
        soon_gone(&groups);
        for group in groups {
            let left = in_group(group);
            assert!(left.is_empty(), "{how}: {left:?} of group {group} are left");
        }
    }
}

fn stats() -> impl Iterator<Item = (u64, Vec<u64>)> {
    let all = std::fs::read_dir("/proc").expect("Linux").flatten();
    all.filter_map(|entry| {
        let text = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let pid = text.split(' ').next()?.parse().ok()?;
        let rest = text.rsplit(") ").next()?;
        // State, parent, group.
        if rest.starts_with('Z') {
            return None;
        }
        Some((pid, rest.split(' ').skip(1).take(2).filter_map(|word| word.parse().ok()).collect()))
    })
}

fn children_of(parent: u32) -> Vec<u64> {
    stats().filter(|(_, ids)| ids.first() == Some(&u64::from(parent))).map(|(pid, _)| pid).collect()
}

fn in_group(group: u64) -> Vec<u64> {
    for _ in 0..3000 {
        if stats().all(|(_, ids)| ids.get(1) != Some(&group)) {
            return vec![];
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    stats().filter(|(_, ids)| ids.get(1) == Some(&group)).map(|(pid, _)| pid).collect()
}
