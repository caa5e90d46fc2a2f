//! The tests of the Python package, on the module that was built beside this test.
//!
//! `FOVEATE_PYTHON` names a Python with the pinned packages; without it the tests are skipped with a message. The package is a
//! folder of its own under the build's temporary files, so that nothing in the sources changes.

mod package;

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use foveate::core::Seed;
use foveate::evolve::{STRATEGIES, StrategyConfig, make};

/// Every strategy after 25 generations on a sphere, as JSON, for `test_evolve.py`.
fn strategies() -> String {
    let mut all = serde_json::Map::new();
    for info in STRATEGIES {
        let config = StrategyConfig::named(info.name).expect("it is in the list");
        let start = vec![0.5, -1.0, 2.0, 0.25, 3.0, -0.125];
        let mut strategy = make(&config, start, Seed::root(7)).expect("its defaults");
        for _ in 0..25 {
            let population = strategy.ask();
            let sphere =
                |genome: &[f32]| -genome.iter().fold(0.0, |sum, &x| sum + f64::from(x) * f64::from(x));
            let fitness: Vec<f64> = (0..population.len()).map(|i| sphere(population.genome(i))).collect();
            strategy.tell(&fitness).expect("finite");
        }
        let (mean, recommended) = (strategy.centre().to_vec(), strategy.recommended().to_vec());
        let population = strategy.ask();
        let genomes: Vec<f64> =
            (0..population.len()).flat_map(|i| population.genome(i)).map(|&x| f64::from(x)).collect();
        let one = serde_json::json!({ "mean": mean, "recommended": recommended, "genomes": genomes });
        all.insert(info.name.to_owned(), one);
    }
    serde_json::Value::Object(all).to_string()
}

#[test]
fn the_package_for_python() {
    let Some(python) = foveate_toy::needs::python() else { return };
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let package = package::folder("package");
    let mut pytest = Command::new(python);
    // With AddressSanitizer, the interpreter needs the library of its functions: `cargo xtask sanitize`.
    if let Some(library) = env::var_os("FOVEATE_ASAN") {
        let module = fs::read(package.join("foveate/_native.abi3.so")).expect("the module");
        let checks = b"__asan_report_load";
        assert!(
            module.windows(checks.len()).any(|part| part == checks),
            "the module is built without the sanitizer"
        );
        pytest.env("LD_PRELOAD", library).env("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1");
    }
    let done = pytest
        .args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"])
        .arg(&tests)
        // They have a Python of their own: site.rs.
        .arg("--ignore")
        .arg(tests.join("site"))
        .env("PYTHONPATH", package)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("FOVEATE_STRATEGIES", strategies())
        .status()
        .expect("FOVEATE_PYTHON names a Python that starts");
    assert!(done.success(), "pytest: {done}");
}
