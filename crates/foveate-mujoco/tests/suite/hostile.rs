//! Broken models, bad states and errors inside of MuJoCo: each is an error of one line, and the process goes on.
//!
//! The library is found as for users, or beside the Python of `FOVEATE_WORLDS_PYTHON`; without it the tests print that they were
//! skipped.

use std::path::{Path, PathBuf};

use foveate_mujoco::{Data, Library, Limits, Model, MujocoError, SceneView, Search, compiler};

fn library() -> Option<Library> {
    let python = std::env::var_os("FOVEATE_WORLDS_PYTHON").map(PathBuf::from);
    match (Search { library: None, python }).find() {
        Ok(found) => Some(Library::open(&found.path).expect("a supported version")),
        Err(error) => {
            foveate_toy::needs::skip(&error.to_string());
            None
        }
    }
}

const BALL: &str = r#"<mujoco><worldbody><camera name="eye" pos="0 -2 0"/><body name="ball" pos="0 0 1"><freejoint/>
    <geom size=".1"/></body><body name="arm"><joint name="hinge" axis="0 1 0"/><geom size=".05" pos=".5 0 0"/></body></worldbody>
    <actuator><motor joint="hinge"/></actuator>
    <sensor><jointpos name="angle" joint="hinge"/><framepos name="place" objtype="body" objname="ball"/></sensor></mujoco>"#;

#[test]
fn broken_models_are_errors_of_one_line() {
    let Some(library) = library() else { return };
    let nested = format!("<mujoco><worldbody>{}", "<body>".repeat(100_000));
    let deep =
        format!("<mujoco><worldbody>{}{}</worldbody></mujoco>", "<body>".repeat(400), "</body>".repeat(400));
    for xml in [
        "",
        "<",
        "<mujoco>",
        "<robot/>",
        "<mujoco><worldbody><geom/></worldbody></mujoco>",
        "<mujoco><worldbody><geom size='nan'/></worldbody></mujoco>",
        "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>",
        "<mujoco><include file='/nowhere/a.xml'/></mujoco>",
        "<mujoco><asset><mesh name='a' file='/nowhere/a.stl'/></asset></mujoco>",
        "<mujoco><asset><texture name='a' type='2d' builtin='flat' width='1000000' height='1000000'/></asset></mujoco>",
        "<mujoco><extension><plugin plugin='nothing'/></extension></mujoco>",
        "<mujoco>\0</mujoco>",
        &nested,
        &deep,
    ] {
        let error = match Model::from_xml(&library, "toy", xml) {
            Err(error) => error,
            Ok(model) => {
                // Some are valid as far as MuJoCo sees it; then they must also run.
                let Ok(mut data) = Data::new(&model) else { continue };
                let _ = data.step_whole(2);
                continue;
            }
        };
        let said = error.to_string();
        assert!(said.lines().count() == 1 && said.contains("toy") && said.len() < 600, "{said}");
    }
    let missing = Model::from_file(&library, Path::new("/nowhere/a.xml"), Limits::default())
        .expect_err("there is none");
    assert!(matches!(missing, MujocoError::File { .. }), "{missing}");
}

/// Processes that compile models badly; that of the command and that of Python are tested with them.
#[test]
fn a_process_that_does_not_compile_is_one_line() {
    let Some(library) = library() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("ball.xml");
    std::fs::write(&model, BALL).expect("written");
    let limits = Limits { seconds: 1, ..Limits::default() };
    let check = |part: &str| {
        let said = Model::from_file(&library, &model, limits).expect_err(part).to_string();
        assert!(said.contains(part) && said.lines().count() == 1, "{said}");
    };
    check("calls foveate::compile_models() first in its main");
    let hello = concat!("printf '\\001foveate hello ", env!("CARGO_PKG_VERSION"), "\\n'");
    let done = "printf '\\001foveate done\\n'";
    for (script, part) in [
        ("true", "does not begin, exit status: 0"),
        ("printf '\\001foveate hello 0.0.0\\n'", "does not begin"),
        (&format!("{hello}; sleep 100"), "takes longer than 1 s; allow more with start_timeout=8"),
        (&format!("{hello}; kill -SEGV $$"), "MuJoCo crashed on it"),
        (
            &format!("{hello}; echo std::bad_alloc; kill -ABRT $$"),
            "more than 768 MB of memory; allow more with memory=3072",
        ),
        // A shell cannot catch again what it was started to ignore.
        (
            &format!("{hello}; exec env --default-signal=INT sh -c 'kill -INT $$'"),
            "stopped while it was compiled",
        ),
        (&format!("{hello}; {done}"), "is no valid model"),
        (&format!("{hello}; {done}; head -c 100000 /dev/urandom >&0"), "is no valid model"),
        (&format!("{hello}; {done}; exit 3"), "exit status: 3"),
        (&format!("{hello}; {done}; truncate -s 2G /dev/fd/0"), "are more than the limit of 1073741824"),
    ] {
        compiler::start_with(vec!["sh".into(), "-c".into(), script.into(), "sh".into()]);
        check(part);
    }
    compiler::start_with(vec!["/nowhere/foveate".into()]);
    check("/nowhere/foveate cannot be started");
    let check = |path: &Path, part: &str| {
        let said = Model::from_file(&library, path, limits).expect_err(part).to_string();
        assert!(said.contains(part) && said.lines().count() == 1, "{said}");
    };
    check(folder.path(), "is a folder");
    check(Path::new("/dev/null"), "is a device");
    check(
        Path::new("/nowhere/a.xml"),
        "cannot read /nowhere/a.xml: there is no such file or folder; check the path",
    );
}

#[test]
fn steps_of_too_many_iterations_are_refused() {
    let Some(library) = library() else { return };
    let xml = |options: &str| format!("<mujoco><option {options}/></mujoco>");
    for option in [
        "iterations",
        "ls_iterations",
        "noslip_iterations",
        "ccd_iterations",
        "sdf_initpoints",
        "sdf_iterations",
    ] {
        let most = Model::from_xml(&library, "toy", &xml(&format!("{option}='10000'")));
        assert!(most.is_ok(), "{option}: {most:?}");
        let said = Model::from_xml(&library, "toy", &xml(&format!("{option}='10001'"))).expect_err(option);
        let said = said.to_string();
        assert!(
            said.contains(&format!("(option {option}) of 10001 are more than the limit of 10000")),
            "{said}"
        );
    }
}

#[test]
fn errors_inside_of_a_step_break_the_simulation_and_nothing_else() {
    let Some(library) = library() else { return };
    // The arena has no room for the contacts.
    let boxes: Vec<String> = (0..60)
        .map(|i| {
            let z = f64::from(i) * 0.1;
            format!("<body pos='0 0 {z}'><freejoint/><geom type='box' size='.5 .5 .5'/></body>")
        })
        .collect();
    let boxes = boxes.concat();
    // What does not fit is an error, or, before version 3.9, a contact less; with less memory it is an error in all versions.
    let mut failed = 0;
    for memory in ["200K", "100K", "50K", "30K", "20K"] {
        let xml = format!("<mujoco><size memory='{memory}'/><worldbody>{boxes}</worldbody></mujoco>");
        // Some versions have no room for the first state.
        let Ok(model) = Model::from_xml(&library, "boxes", &xml) else { continue };
        for _ in 0..50 {
            let Ok(mut data) = Data::new(&model) else { continue };
            let Some(error) = (0..10).find_map(|_| data.step_whole(1).err()) else { continue };
            assert!(error.to_string().lines().count() == 1, "{error}");
            if matches!(error, MujocoError::Failed { .. }) {
                failed += 1;
                let again = data.step_whole(1).expect_err("it is broken");
                assert!(matches!(again, MujocoError::Broken { .. }), "{again}");
                assert!(data.copied().is_err() && data.reset().is_err());
            }
        }
    }
    assert!(failed >= 30, "the arena was large enough: {failed}");
    // The next simulation on this thread, and those on others, are not affected.
    let ball = Model::from_xml(&library, "ball", BALL).expect("a valid model");
    let ends = [(); 4].map(|()| {
        let ball = ball.clone();
        std::thread::spawn(move || {
            let mut data = Data::new(&ball).expect("it starts");
            data.step_whole(50).expect("it runs");
            data.positions().to_vec()
        })
    });
    let ends = ends.map(|thread| thread.join().expect("no panic"));
    assert!(ends.iter().all(|end| *end == ends[0] && end[2] < 1.0), "{ends:?}");
}

#[test]
fn a_camera_that_does_not_exist_is_an_error_inside_of_mujoco() {
    let Some(library) = library() else { return };
    let small = Model::from_xml(&library, "ball", BALL).expect("valid");
    let said = small.camera("nose").expect_err("no such camera").to_string();
    assert_eq!(said, "ball has no camera \"nose\"");
    // A camera of another model: MuJoCo itself finds that its number is too large.
    let two = BALL.replace("<camera name=\"eye\" pos=\"0 -2 0\"/>", "<camera name='a'/><camera name='b'/>");
    let other = Model::from_xml(&library, "two", &two).expect("valid").camera("b").expect("it is there");
    let mut view = SceneView::new(&small, other).expect("not looked at yet");
    let mut data = Data::new(&small).expect("it starts");
    data.forward().expect("it runs");
    let error = view.fill(&mut data, &mut foveate_render::Scene::default()).expect_err("no such number");
    assert!(matches!(error, MujocoError::Failed { .. }), "{error}");
    // Nothing of another model is read.
    let mut foreign =
        Data::new(&Model::from_xml(&library, "again", BALL).expect("valid")).expect("it starts");
    let angle = foreign.sensor("angle").expect("it is there");
    let mut data = Data::new(&small).expect("it starts");
    assert!(data.read(&angle, &mut [0.0]).is_err());
    assert!(data.frame(&foreign.model().body("ball").expect("it is there")).is_err());
}

#[test]
fn bad_numbers_are_refused_and_divergence_is_found() {
    let Some(library) = library() else { return };
    let model = Model::from_xml(&library, "ball", BALL).expect("valid");
    let mut data = Data::new(&model).expect("it starts");
    for bad in [f64::NAN, f64::INFINITY] {
        let said = data.set_controls(&[bad]).expect_err("not finite").to_string();
        assert!(said.starts_with("controls[0] is "), "{said}");
    }
    assert!(data.set_controls(&[0.0; 2]).is_err() && data.set_positions(&[]).is_err());
    data.set_velocities(&[0.0, 0.0, 1e300, 0.0, 0.0, 0.0, 0.0]).expect("finite");
    let error = data.step_whole(3).expect_err("huge");
    assert!(
        matches!(error, MujocoError::Diverged { .. }) && error.to_string().lines().count() == 1,
        "{error}"
    );
    data.reset().expect("it can be reset");
    data.step_whole(3).expect("and runs again");
}

#[test]
fn sensors_and_copies_are_exact() {
    let Some(library) = library() else { return };
    let model = Model::from_xml(&library, "ball", BALL).expect("valid");
    let mut data = Data::new(&model).expect("it starts");
    data.set_controls(&[0.5]).expect("finite");
    data.step_from_half(20).expect("it runs");
    let (angle, place) = (data.sensor("angle").expect("there"), data.sensor("place").expect("there"));
    assert_eq!([angle.len(), place.len()], [1, 3]);
    let mut copy = data.copied().expect("it can be copied");
    for data in [&mut data, &mut copy] {
        data.step_from_half(20).expect("it runs");
    }
    assert_eq!(data.positions(), copy.positions());
    let (mut one, mut three) = ([0.0], [0.0; 3]);
    data.read(&angle, &mut one).expect("its length");
    data.read(&place, &mut three).expect("its length");
    assert_eq!(one[0], data.positions()[7]);
    assert_eq!(three, data.positions()[..3]);
    let ball = model.body("ball").expect("there");
    assert_eq!(data.frame(&ball).expect("computed").0, three);
    assert!(data.read(&angle, &mut three).is_err());
}

#[test]
fn a_file_that_is_no_library_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("libmujoco.so.3.17.0");
    std::fs::write(&path, "text").expect("written");
    let said = Library::open(&path).expect_err("no library").to_string();
    assert!(said.contains("cannot be opened") && said.lines().count() == 1, "{said}");
    // Another library of the system.
    for other in ["/lib/x86_64-linux-gnu/libm.so.6", "/lib/aarch64-linux-gnu/libm.so.6"] {
        if Path::new(other).is_file() {
            let said = Library::open(Path::new(other)).expect_err("not MuJoCo").to_string();
            assert!(said.contains("has no function mj_version"), "{said}");
        }
    }
}
