//! Short episodes of the bundled agent; `foveate_core::statistics` tests the statistics.

use foveate_core::ActMode;
use foveate_core::statistics::paired;
use foveate_envs::registry::EnvRequest;

use super::*;
use crate::champion::champion;

fn world(picture: &str) -> EnvRequest {
    EnvRequest { id: "car-racing".into(), picture: Some(picture.into()), ..EnvRequest::default() }
}

fn contender(name: &str) -> Contender {
    let (file, source) = champion("car-racing").expect("it is built in");
    Contender { name: name.into(), tested: Tested::File(file), source }
}

fn rows(variants: &str, shifts: &str, levels: &str, at: Option<u64>) -> Result<Vec<Condition>, RunError> {
    conditions(&world("fast"), variants, shifts, &severities(levels)?, at)
}

/// Untrained weights of this size and order, as if they were imported.
fn imported(name: &str, agent: &str, settings: &serde_json::Value, layout: &str) -> Contender {
    let numbers = foveate_agents::registry::initial_params(
        agent,
        settings,
        foveate_agents::registry::Init::Torch,
        foveate_core::Seed::root(3),
    );
    let file = AgentFile::new(agent, settings, numbers.expect("numbers")).expect("an agent");
    let file = file.note("source", format!("imported from {name}.npz, layout {layout}"));
    Contender { name: name.into(), tested: Tested::File(file), source: name.into() }
}

/// Those of AttentionAgent's release.
fn published_agent() -> Contender {
    imported("model", "attention-agent", &serde_json::json!({}), "sorted")
}

/// Five episodes of 30 steps in three rows.
fn request<'a>(agents: &[&str], folder: Option<&'a Path>) -> StressRequest<'a> {
    StressRequest {
        world: world("fast"),
        agents: agents.iter().map(|name| contender(name)).collect(),
        conditions: rows("bar", "unsteady", "4", None).expect("good rows"),
        seed: 3,
        episodes: 5,
        workers: 1,
        max_steps: Some(30),
        folder,
    }
}

fn table(request: &StressRequest<'_>) -> (StressTable, Effort) {
    let stop = Stop::default();
    let (table, effort) =
        run(request, &stop, &mut |_| assert!(stop.cost().is_some(), "said before")).expect("it drives");
    let pieces = stop.cost().expect("said before").pieces;
    assert_eq!((pieces, stop.pieces_done()), (effort.episodes, effort.episodes));
    (table, effort)
}

#[test]
fn rows_are_what_was_asked_for() {
    let names = |variants: &str, shifts: &str, levels: &str, at: Option<u64>| {
        let rows = rows(variants, shifts, levels, at).expect("good rows");
        rows.into_iter().map(|row| row.name).collect::<Vec<_>>().join(" ")
    };
    for (variants, shifts, levels, at, expect) in [
        ("all", "none", "1..5", None, "original color color3 bar blob noise fake-lane"),
        ("none", "", "1..5", None, "original"),
        ("original,bar,bar:width=9,bar", "none", "3", None, "original bar bar:width=9"),
        ("none", "noise", "2..4", None, "original noise:2 noise:3 noise:4"),
        ("bar", "noise,hue+blur:x", "3", None, "!"),
        ("bar", "hue+blur", "1,2.5", None, "original bar hue:1+blur:1 hue:2.5+blur:2.5"),
        ("none", "blob:5:x=0.1,blob:x=0.2", "3", None, "original blob:5:x=0.1 blob:3:x=0.2"),
        ("none", "noise,blur:2", "5", Some(200), "original noise:5@200 blur:2@200"),
        ("none", "noise@7,hue@3-9", "5", None, "original noise:5@7 hue:5@3-9"),
    ] {
        if expect == "!" {
            assert!(rows(variants, shifts, levels, at).is_err(), "{shifts}");
        } else {
            assert_eq!(names(variants, shifts, levels, at), expect, "{variants} {shifts} {levels}");
        }
    }
    let every = rows("none", "all", "1..5", None).expect("good rows");
    let (fitting, others) = fitting_shifts(foveate_registry::make(&world("fast")).expect("native").spec());
    assert_eq!(every.len(), 1 + 5 * fitting.len());
    let names: Vec<&str> = others.iter().map(|info| info.name).collect();
    assert_eq!(names, ["background-image", "noise-channels", "doubled"]);
    // In a world of numbers, all that change pictures are left out.
    let cart = EnvRequest { id: "cartpole-swingup-harder".into(), ..EnvRequest::default() };
    let rows = conditions(&cart, "none", "all", &[5.0], None).expect("some fit");
    let names: Vec<String> = rows.into_iter().map(|row| row.name).collect();
    let expect =
        ["original", "sticky:5", "unsteady:5", "shuffle:5", "noise-channels:5", "doubled:5", "missing:5"];
    assert_eq!(names, expect);
}

#[test]
fn a_set_is_the_rows_of_its_shifts() {
    let rows = rows("none", "reshuffle,noise:2", "1..5", None).expect("good rows");
    let names: Vec<&str> = rows.iter().map(|row| &*row.name).collect();
    assert_eq!(
        (names.len(), names[1], names[6], names[7]),
        (8, "shuffle:5:every=25", "shuffle:5", "noise:2")
    );
}

#[test]
fn rows_that_make_no_sense() {
    for (shifts, levels, at, wants) in [
        ("fog", "3", None, "no shift \"fog\""),
        ("noise,", "3", None, "a shift is missing in \"noise,\""),
        ("noise:6", "3", None, "severity \"6\""),
        ("noise", "0", None, "severities \"0\" are not numbers from 1 to 5"),
        ("noise", "6", None, "severities \"6\""),
        ("noise", "NaN", None, "severities \"NaN\""),
        ("noise", "", None, "severities \"\""),
        ("noise", "3..1", None, "severities \"3..1\""),
        ("noise", "0..5", None, "severities \"0..5\""),
        ("noise@5", "3", Some(7), "leave out either @ or the setting `at 7`"),
        ("none", "3", Some(7), "the setting `at 7` switches shifts on, and there are none"),
    ] {
        let said = rows("none", shifts, levels, at).expect_err(shifts).to_string();
        assert!(said.contains(wants) && said.lines().count() == 1, "{shifts} {levels}: {said}");
    }
}

#[test]
fn rows_that_an_agent_cannot_act_in_are_skipped_with_the_reason() {
    let world = EnvRequest { id: "cartpole-swingup-harder".into(), ..EnvRequest::default() };
    let spec = worlds::make(world.clone()).expect("native").spec().clone();
    let contender = |name: &str| {
        let agent = foveate_agents::registry::find(name).expect("it exists");
        let settings = (agent.fit)(&spec, &[[-1.0, 1.0]; 5]);
        let params = foveate_agents::registry::initial_params(
            name,
            &settings,
            foveate_agents::registry::Init::Torch,
            foveate_core::Seed::root(3),
        );
        let file = AgentFile::new(name, &settings, params.expect("numbers")).expect("an agent");
        Contender { name: name.into(), tested: Tested::File(file), source: name.into() }
    };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let rows = "shuffle:5,noise-channels,doubled:5,missing:3";
    let request = StressRequest {
        conditions: conditions(&world, "none", rows, &[2.0, 5.0], None).expect("good rows"),
        world,
        agents: vec![contender("controller"), contender("attention-neuron")],
        seed: 3,
        episodes: 3,
        workers: 1,
        max_steps: Some(20),
        folder: Some(dir.path()),
    };
    let (whole, effort) = table(&request);
    let skipped = |agent: usize| {
        let rows = whole.agents[agent].rows.iter().filter(|row| row.skipped.is_some());
        rows.map(|row| &*row.name).collect::<Vec<_>>()
    };
    assert_eq!(skipped(0), ["noise-channels:2", "noise-channels:5", "doubled:5", "missing:3"]);
    assert_eq!(skipped(1), [""; 0], "any number of sensors");
    assert_eq!(effort.episodes, 3 * (2 + 6));
    for row in whole.agents[0].rows.iter().filter(|row| row.skipped.is_some()) {
        assert_eq!((row.summary.n, row.change, row.solved), (0, None, None), "{}", row.name);
    }
    let markdown = whole.markdown();
    let reason = "n/a: noise-channels:2: ";
    assert!(markdown.contains("| doubled:5 | n/a | – |") && markdown.contains(reason), "{markdown}");
    assert!(whole.csv().contains("doubled:5,shift,,,0,,,,,,,,,,,,,,,"), "{}", whole.csv());
    assert!(plot::overview(&whole).contains(">n/a<"));
    assert!(plot::curves(&whole).expect("of noise channels").contains("noise-channels"));
    let json = serde_json::to_value(&whole).expect("plain");
    assert_eq!(serde_json::from_value::<StressTable>(json).expect("its own"), whole);
    let (again, effort) = table(&request);
    assert_eq!((again, effort.episodes), (whole, 0), "rows of the folder");
}

#[test]
fn digits_do_not_depend_on_the_workers() {
    let (one, effort) = table(&request(&["a"], None));
    assert_eq!((effort.episodes, effort.steps), (15, 450));
    for workers in [2, 5] {
        let (other, _) = table(&StressRequest { workers, ..request(&["a"], None) });
        assert_eq!(other, one);
    }
    let (later, _) = table(&StressRequest { seed: 4, ..request(&["a"], None) });
    assert_ne!(later.digest, one.digest);
}

#[test]
fn a_row_is_an_evaluation_and_its_change_is_paired() {
    let (table, _) = table(&request(&["a", "b"], None));
    assert_eq!(table.agents[0].rows, table.agents[1].rows, "the same weights");
    let rows = &table.agents[0].rows;
    let names: Vec<(&str, &str)> = rows.iter().map(|row| (&*row.name, &*row.kind)).collect();
    assert_eq!(names, [("original", "original"), ("bar", "variant"), ("unsteady:4", "shift")]);
    assert_eq!((&rows[2].curve, rows[2].severity), (&Some("unsteady".into()), Some(4.0)));
    assert_eq!(rows[0].change, None);
    for row in &rows[1..] {
        let (change, expect) =
            (row.change.expect("it has one"), paired(&rows[0].returns, &row.returns).expect("five"));
        assert_eq!(
            (change.difference, change.ci95, change.p),
            (expect.difference, expect.interval, expect.p)
        );
        assert!(change.p_holm >= change.p && row.solved == Some(false));
    }
    // So early on the track a bar has no effect; a loose steering wheel has.
    assert_ne!(rows[2].returns, rows[0].returns);
    assert_eq!(rows[1].published, None, "the champion's weights are not the published ones");

    let env = worlds::make(EnvRequest { variants: vec!["bar".into()], ..world("fast") }).expect("it exists");
    let agent = contender("a").tested.agent().expect("good");
    let report = evaluate::run(
        &EvalRequest {
            env: &*env,
            agent: &*agent,
            labels: Labels::default(),
            seeds: Seeds::Stream { seed: 3, episodes: 5 },
            workers: 1,
            max_steps: Some(30),
            mode: ActMode::Greedy,
            reference: None,
        },
        &Stop::default(),
    );
    assert_eq!(report.expect("it drives").returns, rows[1].returns);
}

#[test]
fn one_episode_has_no_interval_anywhere() {
    let (table, _) = table(&StressRequest {
        episodes: 1,
        conditions: rows("bar", "unsteady", "4,5", None).expect("good rows"),
        ..request(&["a", "b"], None)
    });
    for row in &table.agents[0].rows {
        assert_eq!((row.summary.std, row.summary.ci95), (None, None), "{}", row.name);
        assert!(row.change.is_none_or(|c| c.ci95.is_none() && c.p == 1.0), "{}", row.name);
    }
    let markdown = table.markdown();
    // The only standard deviations are the published ones.
    let ours = markdown.replace("900 ± 35", "").replace("914 ± 15", "").replace("mean ± std", "");
    assert!(!ours.split_once("\n± is").expect("a note").0.contains('±'), "{markdown}");
    assert!(!markdown.contains('…') && markdown.contains("| none: one episode |"), "{markdown}");
    assert!(
        markdown.contains("1 episode per row") && markdown.contains("One episode has no interval"),
        "{markdown}"
    );
    let csv = table.csv();
    let head: Vec<&str> = csv.lines().next().expect("a head").split(',').collect();
    for line in csv.lines().skip(1) {
        for (name, field) in head.iter().zip(line.split(',')) {
            let empty = matches!(*name, "std" | "ci95_low" | "ci95_high" | "change_low" | "change_high");
            assert!(!empty || field.is_empty(), "{name}: {field}");
        }
    }
    let json = serde_json::to_value(&table).expect("plain");
    let row = &json["agents"][0]["rows"][1];
    assert!(row["ci95"].is_null() && row["std"].is_null() && row["change"]["ci95"].is_null(), "{row}");
    assert_eq!(serde_json::from_value::<StressTable>(json).expect("its own"), table);
    let (overview, curves) = (plot::overview(&table), plot::curves(&table).expect("a curve"));
    assert!(
        overview.contains("one episode per row: no interval") && !overview.contains("stroke-width=\"4\"")
    );
    assert!(
        curves.contains("one episode per point: no interval") && !curves.contains("fill-opacity"),
        "{curves}"
    );
}

#[test]
fn intervals_say_that_they_are_not_corrected_and_stars_that_they_are() {
    let (mut table, _) = table(&request(&["a"], None));
    let markdown = table.markdown();
    assert!(markdown.contains("intervals are 95 % for each row alone, without correction"), "{markdown}");
    assert!(markdown.contains("stars are corrected by Holm's method"), "{markdown}");
    assert!(plot::overview(&table).contains("not corrected for the number of rows"));
    // Only CarRacing has tracks.
    assert!(markdown.contains("the same tracks"), "{markdown}");
    table.env = "gym:CartPole-v1".into();
    table.published_source = None;
    let markdown = table.markdown();
    assert!(!markdown.contains("track") && markdown.contains("the same episodes"), "{markdown}");
}

#[test]
fn axes_follow_small_scores() {
    let (mut table, _) = table(&StressRequest {
        conditions: rows("none", "unsteady", "4,5", None).expect("good rows"),
        ..request(&["a"], None)
    });
    for row in &mut table.agents[0].rows {
        row.returns = vec![0.9, 0.91, 0.94];
        row.summary = foveate_train::Summary::of(&row.returns);
        row.published = None;
    }
    table.published_source = None;
    for svg in [plot::overview(&table), plot::curves(&table).expect("a curve")] {
        assert!(svg.contains(">0.2<") && svg.contains(">0.8<") && svg.contains(">1.0<"), "{svg}");
    }
}

#[test]
fn published_figures_stand_beside_the_release_that_they_are_of() {
    let original = |contender: Contender| {
        let request = StressRequest {
            agents: vec![contender, self::contender("champion")],
            conditions: rows("bar", "none", "1", None).expect("good rows"),
            episodes: 1,
            max_steps: Some(2),
            ..request(&[], None)
        };
        let (table, _) = table(&request);
        assert!(table.agents[1].rows.iter().all(|row| row.published.is_none()), "another agent's weights");
        let [plain, bar] = [0, 1].map(|row| table.agents[0].rows[row].published.map(|p| (p.mean, p.std)));
        let markdown = table.markdown();
        assert_eq!(markdown.contains("published |"), plain.is_some());
        assert_eq!(
            markdown.matches("published |").count(),
            if plain.is_some() { 2 } else { 0 },
            "{markdown}"
        );
        assert_eq!(plot::overview(&table).contains("published for model"), plain.is_some());
        (plain, bar, table.published_source)
    };
    let agent = "attention-agent";
    let (plain, bar, source) = original(published_agent());
    assert_eq!((plain, bar), (Some((914.0, 15.0)), Some((900.0, 35.0))));
    assert!(source.expect("it has one").contains("Self-Interpretable"));
    // As many weights of the same kind of agent: another divisor, another order, another network, or no release at all.
    let scaled = serde_json::json!({ "scale": "sqrt_d" });
    let (plain, bar, source) = original(imported("model", agent, &scaled, "registration"));
    assert_eq!((plain, bar), (Some((895.59, 60.83)), None));
    assert!(source.expect("it has one").contains("Sensory Neuron"));
    assert_eq!(original(imported("model", agent, &scaled, "sorted")), (None, None, None));
    let (plain, ..) = original(imported("model", agent, &serde_json::json!({}), "registration"));
    assert_eq!(plain, Some((854.34, 94.46)));
    let five = serde_json::json!({ "top_k": 5 });
    assert_eq!(original(imported("model", agent, &five, "sorted")), (None, None, None));
    let mut own = published_agent();
    let Tested::File(file) = &mut own.tested else { panic!("a file") };
    file.about.remove("source");
    assert_eq!(original(own), (None, None, None));
}

#[test]
fn every_published_score_is_of_a_known_release() {
    let (mut known, mut all) = (0, 0);
    for agent in foveate_registry::AGENTS.iter() {
        for weights in agent.published {
            all += 1;
            let world = foveate_registry::WORLDS.get(weights.world.id).expect("its world");
            let scores = world.published.iter().find(|scores| scores.release == [agent.name, weights.name]);
            let scores = scores.unwrap_or_else(|| panic!("no score of {}", weights.name));
            let original =
                scores.scores.iter().find(|score| score.variant == "original").expect("it has one");
            assert_eq!([original.mean, original.std], weights.score, "{}", weights.name);
            // What an import writes is what the table looks for.
            let settings = (weights.settings)();
            let file = AgentFile::new(weights.agent, &settings, vec![0.5; weights.params]);
            let file = file
                .expect("as many")
                .note("source", format!("imported from x, layout {}", weights.layout.name()));
            let found = published::scores(weights.world.id, &Tested::File(file)).expect("published");
            assert_eq!(found.release, [agent.name, weights.name]);
        }
    }
    for world in foveate_registry::WORLDS.iter() {
        known += world.published.len();
    }
    assert_eq!(known, all, "every world names releases that there are");
    // In DoomTakeCover the settings are those that the world asks for.
    let agent = foveate_agents::registry::find("attention-agent").expect("it exists");
    let request = EnvRequest { id: "take-cover".into(), ..EnvRequest::default() };
    let fitted =
        crate::fit::picture_settings(agent, &worlds::shape(&request).expect("known")).expect("a picture");
    let whole = |settings: &serde_json::Value| {
        foveate_agents::registry::full_config("attention-agent", settings).expect("good")
    };
    assert_eq!(whole(&fitted), whole(&serde_json::json!({ "actions": [[-1.0, 1.0]] })));
}

#[test]
fn a_shift_without_any_effect_is_named() {
    let stacked = EnvRequest {
        options: [("wrap".to_owned(), "grey:opencv+blank:bottom=12+stack:4".to_owned())].into(),
        ..world("classic")
    };
    let neuron = foveate_agents::registry::published(Some("attention-neuron"), 7212)[0].1;
    let request = StressRequest {
        agents: vec![imported("pi", neuron.agent, &(neuron.settings)(), "registration")],
        conditions: conditions(&stacked, "none", "shuffle:5:patch=6,unsteady", &[5.0], None)
            .expect("good rows"),
        world: stacked,
        episodes: 2,
        ..request(&[], None)
    };
    let (table, _) = table(&request);
    let none: Vec<bool> = table.agents[0].rows.iter().map(|row| row.no_effect).collect();
    assert_eq!(none[..2], [false, true]);
    let markdown = table.markdown();
    assert!(markdown.contains("| no effect | – | – | – |"), "{markdown}");
    assert!(markdown.contains(" no effect: every episode has the return"), "{markdown}");
    assert!(markdown.contains("the patches of all 4 frames of an observation alike"), "{markdown}");
    assert!(plot::overview(&table).contains("(no effect)"));
    assert!(table.csv().lines().nth(2).expect("a row").ends_with(",true"), "{}", table.csv());
    let json = serde_json::to_value(&table).expect("plain");
    assert_eq!((&json["agents"][0]["rows"][1]["no_effect"], &json["frames"]), (&true.into(), &4.into()));
}

#[test]
fn published_figures_are_those_of_the_plain_world() {
    let base = EnvRequest { shifts: vec!["blur:1".into()], ..world("fast") };
    let (table, _) =
        table(&StressRequest { world: base, agents: vec![published_agent()], ..request(&[], None) });
    assert!(table.agents[0].rows.iter().all(|row| row.published.is_none()));
    assert_eq!((table.published_source.as_ref(), &*table.base), (None, &["blur:1".to_owned()][..]));
    assert!(!table.markdown().contains("published") && table.markdown().contains(", with blur:1"));
}

#[test]
fn finished_rows_are_kept_and_broken_ones_driven_again() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = Some(dir.path());
    let (first, effort) = table(&request(&["a"], folder));
    assert_eq!(effort.steps, 450);
    let (again, effort) = table(&request(&["a"], folder));
    assert_eq!((&again, effort.steps), (&first, 0));
    let (_, effort) = table(&StressRequest { seed: 9, ..request(&["a"], folder) });
    assert_eq!(effort.steps, 450, "other tracks are other rows");

    let files: Vec<_> = std::fs::read_dir(dir.path().join("rows")).expect("there").flatten().collect();
    assert_eq!(files.len(), 6);
    let text = std::fs::read_to_string(files[0].path()).expect("text");
    for broken in ["", "{}", &text[..text.len() / 2], &text.replace("\"returns\":[", "\"returns\":[1.5,")] {
        for file in &files {
            std::fs::write(file.path(), broken).expect("writable");
        }
        let (again, effort) = table(&request(&["a"], folder));
        assert_eq!((&again, effort.steps), (&first, 450));
    }
    // Rows that are complete but were changed after they were written.
    for key in ["returns", "lengths", "sha256"] {
        for file in std::fs::read_dir(dir.path().join("rows")).expect("there").flatten() {
            let text = std::fs::read_to_string(file.path()).expect("text");
            let mut row: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            row[key] = match &row[key] {
                serde_json::Value::Array(all) => vec![all[0].clone(); all.len()].into(),
                _ => "0".repeat(64).into(),
            };
            std::fs::write(file.path(), row.to_string()).expect("writable");
        }
        let (again, effort) = table(&request(&["a"], folder));
        assert_eq!((&again, effort.steps), (&first, if key == "lengths" { 0 } else { 450 }), "{key}");
    }
}

#[test]
fn a_stopped_run_goes_on_where_it_was() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let request = request(&["a", "b"], Some(dir.path()));
    let stop = Stop::default();
    let stopped = run(&request, &stop, &mut |progress| {
        if progress.done == 1 {
            stop.ask();
        }
    });
    assert!(stopped.expect_err("stopped").to_string().contains("stopped"));
    let mut kept = 0;
    let (table, effort) = run(&request, &Stop::default(), &mut |p| kept = p.kept).expect("it drives");
    // Both have the same weights: the rows of the first are also those of the second.
    assert_eq!((effort.steps, table.agents.len()), (300, 2));
    assert!(kept >= 1, "{kept}");
}

#[test]
fn nothing_to_do_says_so() {
    let none = |change: &dyn Fn(&mut StressRequest<'_>)| {
        let mut request = request(&["a"], None);
        change(&mut request);
        run(&request, &Stop::default(), &mut |_| {}).expect_err("nothing to do").to_string()
    };
    assert!(none(&|r| r.episodes = 0).contains("at least 1"));
    assert!(none(&|r| r.episodes = usize::MAX).contains("at most 1000000"));
    assert!(none(&|r| r.agents.clear()).contains("name an agent"));
    assert!(none(&|r| r.world.picture = Some("sharp".into())).contains("no picture \"sharp\""));
    // An impossible row is detected before the first row is run.
    let said = none(&|r| {
        r.conditions = rows("bar,baa", "none", "1", None).expect("names are not looked up yet");
        r.episodes = 1_000_000;
    });
    assert!(said.contains("no variant \"baa\""), "{said}");
}

#[test]
fn texts_hold_together() {
    let (table, _) = table(&request(&["plain", "a|b, \"c\""], None));
    let markdown = table.markdown();
    let grids: Vec<&str> = markdown.split("\n\n").filter(|part| part.starts_with('|')).collect();
    assert_eq!(grids.len(), 3, "side by side, and one each\n{markdown}");
    for grid in grids {
        let width = |line: &str| line.replace("\\|", "").matches('|').count();
        let first = grid.lines().next().map(width);
        assert!(grid.lines().all(|line| Some(width(line)) == first), "{grid}");
        assert_eq!(grid.lines().count(), 5);
    }
    assert!(markdown.contains(&table.digest), "{markdown}");
    let none: Vec<bool> = table.agents[0].rows.iter().map(|row| row.no_effect).collect();
    assert_eq!(none, [false, true, false], "actions that are changed have an effect\n{markdown}");

    let csv = table.csv();
    assert_eq!(csv.lines().count(), 7);
    let fields = |line: &str| line.replace("\"a|b, \"\"c\"\"\"", "x").split(',').count();
    assert!(csv.lines().all(|line| fields(line) == fields(csv.lines().next().expect("a head"))), "{csv}");

    let json = serde_json::to_string(&table).expect("plain");
    assert_eq!(serde_json::from_str::<StressTable>(&json).expect("its own"), table);
}

#[test]
fn plots_hold_every_row() {
    let named = |shifts| StressRequest {
        conditions: rows("bar", shifts, "1..5", None).expect("good rows"),
        ..request(&["a", "<b>"], None)
    };
    let (table, _) = table(&named("noise,hue+blur,bar:2"));
    let overview = plot::overview(&table);
    for text in ["&lt;b&gt;", ">original<", ">bar (no effect)<", ">bar:2 (no effect)<"] {
        assert!(overview.contains(text), "{text}: {overview}");
    }
    assert!(!overview.contains("noise:3"), "curves have a picture of their own");
    let curves = plot::curves(&table).expect("two curves");
    for text in [">noise", ">hue+blur", "&lt;b&gt;"] {
        assert!(curves.contains(text), "{text}: {curves}");
    }
    assert_eq!(curves.matches("<circle").count(), 2 * 2 * 6, "two agents, two shifts, severities 0 to 5");
    for svg in [&overview, &curves] {
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
    let mut plain = table;
    plain.agents.iter_mut().for_each(|agent| agent.rows.truncate(2));
    assert_eq!(plot::curves(&plain), None);
}

#[test]
fn the_sheet_shows_every_shift() {
    let env = worlds::make(world("fast")).expect("it exists");
    let agent = contender("a").tested.agent().expect("good");
    let request = SheetRequest { env: &*env, agent: &*agent, seed: 1, step: 60, severities: &[1.0, 5.0] };
    let bytes = sheet(&request).expect("a picture");
    let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes)).read_info().expect("a PNG file");
    let mut pixels = vec![0; reader.output_buffer_size().expect("small")];
    let info = reader.next_frame(&mut pixels).expect("one frame");
    assert_eq!((info.width, info.height), (3 * 214 + 14, 8 * 132 + 14));
    assert_eq!(sheet(&request).expect("a picture"), bytes);
    let said = sheet(&SheetRequest { step: 100_000, ..request }).expect_err("too late").to_string();
    assert!(said.contains("the episode ends after") && said.contains("choose an earlier one"), "{said}");
}

#[test]
fn small_returns_have_three_digits() {
    let (file, source) = champion("door-key-5x5").expect("it is built in");
    let noted = file.world("champion").expect("its world is known");
    let world = noted.accept(&crate::trust::WorldSpec::default()).expect("a native world");
    let request = StressRequest {
        conditions: conditions(&world, "none", "sticky", &[3.0], None).expect("good rows"),
        agents: vec![Contender { name: "a".into(), tested: Tested::File(file), source }],
        world,
        max_steps: None,
        ..request(&[], None)
    };
    let (table, _) = table(&request);
    let [plain, sticky] = [0, 1].map(|row| &table.agents[0].rows[row]);
    let markdown = table.markdown();
    assert!(
        markdown.contains(&format!(
            "| original | {:.3} ± {:.3} |",
            plain.summary.mean,
            plain.summary.std.expect("five")
        )),
        "{markdown}"
    );
    let change = sticky.change.expect("it has one").difference;
    assert!(markdown.contains(&format!("| {change:+.3}").replace('-', "−")), "{markdown}");
}
