//! Tests the lab in a real browser.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use crate::browser::{Browser, chromium};
use crate::common::{Dir, check_fails, npz};

/// A running lab of the real binary.
struct Lab {
    child: Child,
    url: String,
    /// Kept open, since the program would end if its reader left.
    _output: Lines<BufReader<ChildStdout>>,
    _dir: Dir,
}

impl Lab {
    fn start(args: &[&str]) -> Self {
        let dir = Dir::new();
        let mut command = dir.command(&[&["lab", "--no-open"], args].concat());
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it was piped")).lines();
        let url = lines.next().expect("a line").expect("text");
        assert!(url.starts_with("http://127.0.0.1:") && url.contains("/?token="), "{url}");
        Lab { child, url, _output: lines, _dir: dir }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The agent's picture as text.
const SEEN: &str = "document.querySelector('.seen .picture').toDataURL()";
const SCORE: &str = "Number(document.querySelector('.score').textContent.replace('−', '-'))";
const STEPS: &str = "Number(document.querySelector('.steps').textContent)";
const STATE: &str = "document.querySelector('.state').textContent";
const WHEEL: &str = "document.getElementById('wheel').textContent";
const DRIVEN: &str = "document.querySelectorAll('#past tr').length";

/// Sets a slider as a user would.
fn slide(id: &str, value: u32) -> String {
    format!(
        "(() => {{ const e = document.getElementById({id:?}); e.value = {value}; e.dispatchEvent(new Event('input')); }})()"
    )
}

#[test]
fn a_page_in_chromium() {
    let Some(program) = chromium() else { return };
    let lab = Lab::start(&["--option", "max_steps=400"]);
    let mut browser = Browser::start(&program);

    // Load: the agent acts, and the page shows it.
    let link = format!("{}#seed=5&picture=fast&auto=off", lab.url);
    let tab = browser.open(&link, (1440, 900, false));
    browser.until(&tab, "document.querySelector('.score')");
    browser.until(&tab, &format!("{STEPS} > 60 && {SCORE} > 20"));
    browser.until(&tab, "Number(document.getElementById('rate').textContent) > 0");
    assert_eq!(browser.eval(&tab, "document.getElementById('picture').value"), "fast", "the link says so");
    assert_eq!(browser.eval(&tab, "document.getElementById('seed').value"), "5");

    // A second tab is a separate session.
    let other = browser.open(&format!("{}#seed=6&speed=0.25", lab.url), (390, 844, true));
    browser.until(&other, "document.querySelector('.score')");
    browser.until(&other, &format!("{STEPS} > 0"));
    assert_eq!(
        browser.eval(&other, "document.documentElement.scrollWidth <= innerWidth"),
        true,
        "a phone is wide enough"
    );

    // Pause, step, and everything that is visible immediately.
    browser.key(&tab, " ", false);
    browser.until(&tab, &format!("{STATE} === 'paused'"));
    let steps = browser.eval(&tab, STEPS);
    browser.key(&tab, ".", false);
    browser.until(&tab, &format!("{STEPS} === {steps} + 1"));
    let mut looks = vec![browser.eval(&tab, SEEN)];
    let mut changes = |browser: &mut Browser, what: &str| {
        let last = looks.last().expect("there is one").as_str().expect("text").to_owned();
        browser.until(&tab, &format!("{SEEN} !== {last:?}"));
        let now = browser.eval(&tab, SEEN);
        assert!(!looks.contains(&now), "{what} looks as before");
        looks.push(now);
    };
    browser.key(&tab, "p", false);
    changes(&mut browser, "without patches");
    browser.key(&tab, "i", false);
    changes(&mut browser, "importance");
    browser.eval(&tab, &slide("shift-hue", 4));
    changes(&mut browser, "a shift");
    browser.until(&tab, "location.hash.includes('shifts=hue:4')");
    browser.key(&tab, "b", false);
    browser.drag(&tab, ".world .frame", [0.3, 0.3], [0.5, 0.6]);
    changes(&mut browser, "a bar");
    browser.until(&tab, "location.hash.includes('bar:5:x=')");
    browser.key(&tab, "Delete", false);
    browser.until(&tab, "!location.hash.includes('bar:5')");
    browser.eval(&tab, &slide("k", 2));
    browser.until(&tab, "location.hash.includes('agents=0:2')");
    browser.eval(&tab, "document.getElementById('unshift').click()");
    browser.until(&tab, "!location.hash.includes('shifts=')");

    // The steering wheel.
    browser.key(&tab, "ArrowUp", true);
    browser.until(&tab, &format!("{STATE} === 'you drive'"));
    browser.lift(&tab, "ArrowUp");
    browser.key(&tab, "Escape", false);
    browser.until(&tab, &format!("{STATE} !== 'you drive'"));
    // Restarting the track keeps the user's control; another agent has its own control.
    browser.key(&tab, "r", false);
    browser.until(&tab, &format!("{STEPS} < 40"));
    browser.key(&tab, "h", false);
    browser.until(&tab, &format!("{STATE} === 'you drive'"));
    browser.key(&tab, "r", false);
    browser.until(&tab, &format!("{STATE} === 'you drive' && {STEPS} < 40 && {WHEEL} === 'Give it back'"));
    let other_agent = "(() => { const e = document.getElementById('agent0'); e.value = 1; e.dispatchEvent(new Event('change')); })()";
    browser.eval(&tab, other_agent);
    browser.until(&tab, &format!("{STATE} !== 'you drive' && {WHEEL} === 'Take the wheel'"));

    // Another agent beside it, at full speed, to the end.
    browser.key(&tab, "c", false);
    browser.until(&tab, "document.querySelectorAll('.runner').length === 2");
    let driven = browser.eval(&tab, DRIVEN);
    browser.eval(&tab, "document.querySelector('#speed input[value=\"0\"]').click()");
    browser.until(&tab, &format!("{DRIVEN} === {driven} + 1"));
    browser.eval(&tab, "document.getElementById('film').click()");
    browser.until(&tab, "document.getElementById('toast').textContent.startsWith('Saved')");

    // Light and dark theme, help, and a screenshot.
    let theme = browser.eval(&tab, "document.documentElement.dataset.theme");
    browser.key(&tab, "t", false);
    browser.until(&tab, &format!("document.documentElement.dataset.theme !== {theme}"));
    browser.key(&tab, "?", false);
    browser.until(&tab, "document.getElementById('keys').open");
    assert!(browser.screenshot(&tab).len() > 20_000);

    // Every control has an accessible name.
    let nameless = "[...document.querySelectorAll('button, input, select')].filter((e) => !(e.textContent.trim() || e.ariaLabel || e.labels?.[0]?.textContent.trim())).length";
    assert_eq!(browser.eval(&tab, nameless), 0);
    assert_eq!(browser.errors, Vec::<String>::new(), "the console is empty");
}

#[test]
fn the_original_order_of_shuffled_sensors_in_chromium() {
    let Some(program) = chromium() else { return };
    let mut browser = Browser::start(&program);
    let hidden = "getComputedStyle(document.querySelector('.original')).display === 'none'";
    let picture = |what: &str| format!("document.querySelector('.{what} .picture').toDataURL()");

    // A picture: beside the shuffled one, the original order.
    let lab = Lab::start(&["--option", "max_steps=400"]);
    let tab = browser.open(&format!("{}#seed=5&picture=fast&show=nothing", lab.url), (1440, 900, false));
    browser.until(&tab, "document.querySelector('.score')");
    browser.until(&tab, &format!("{STEPS} > 5"));
    browser.key(&tab, " ", false);
    browser.until(&tab, &format!("{STATE} === 'paused'"));
    assert_eq!(browser.eval(&tab, hidden), true, "it has its own order");
    let own = browser.eval(&tab, SEEN);
    browser.eval(&tab, &slide("shift-shuffle", 5));
    browser.until(&tab, &format!("!({hidden}) && {} !== {}", picture("seen"), picture("original")));
    let large = "document.querySelector('.original .picture').width > 100";
    browser.until(&tab, &format!("{large} && {SEEN} !== {own}"));
    // Mean brightness.
    let mean = |what: &str| {
        format!(
            "(() => {{ const c = document.querySelector('.{what} .picture'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let sum = 0; for (let i = 0; i < d.length; i += 4) sum += d[i]; return sum / d.length; }})()"
        )
    };
    let same = format!("Math.abs({} - {}) < 2", mean("seen"), mean("original"));
    assert_eq!(browser.eval(&tab, &same), true, "no patch is lost");
    let before = browser.eval(&tab, &picture("seen"));
    browser.eval(&tab, "document.getElementById('shuffle').click()");
    browser.until(&tab, &format!("{} !== {before}", picture("seen")));
    assert_eq!(browser.errors, Vec::<String>::new(), "the console is empty");
    drop(lab);

    // Numbers: bars in the order shown, and weights over time.
    let dir = Dir::new();
    let params: Vec<f32> = (0..913).map(|i| (i as f32 * 0.37).sin() * 0.3).collect();
    dir.write("numbers.npz", npz(&params));
    dir.ok(&["import", "numbers.npz"]);
    let weights = dir.path("numbers.safetensors").display().to_string();
    let lab = Lab::start(&[&weights]);
    let tab = browser.open(&format!("{}#seed=1&shifts=shuffle:5", lab.url), (1440, 900, false));
    browser.until(&tab, "document.querySelector('.score')");
    browser.until(&tab, &format!("{STEPS} > 3 && !({hidden})"));
    browser.until(&tab, &format!("{} !== {}", picture("seen"), picture("original")));
    assert_eq!(
        browser.eval(&tab, "getComputedStyle(document.querySelector('.of-pictures')).display"),
        "none"
    );
    browser.until(&tab, "document.getElementById('votes').textContent.startsWith('most to ')");
    assert_eq!(browser.errors, Vec::<String>::new(), "the console is empty");
}

#[test]
fn the_page_without_a_server_plays_the_episode_of_the_command() {
    let Some(program) = chromium() else { return };
    let dir = Dir::new();
    let said = dir.ok(&["lab", "--export", "site"]);
    assert!(said.contains("index.html; open it in a browser"), "{said}");
    assert!(dir.read("site/index.html").len() < 5_000_000, "it is small");
    let evaluated = dir.json(&["eval", "--seeds", "3..4", "--json"]);
    let score = evaluated["returns"][0].as_f64().expect("a number");

    let mut browser = Browser::start(&program);
    let page = format!("file://{}", dir.path("site/index.html").display());
    let tab = browser.open(&format!("{page}#seed=3&speed=max&auto=off&effects=off"), (1366, 820, false));
    browser.until(&tab, &format!("{DRIVEN} === 1"));
    let played = browser.eval(&tab, "document.querySelector('#past td:last-child').textContent");
    assert_eq!(played, format!("{score:.1}"));

    // An intervention, and its effect.
    browser.eval(&tab, "document.querySelector('[value=\"1\"][name=speed]').click()");
    browser.key(&tab, "r", false);
    browser.key(&tab, "o", false);
    browser.drag(&tab, ".seen .frame", [0.5, 0.5], [0.6, 0.65]);
    let effect = "document.querySelector('.effect').textContent";
    browser.until(&tab, &format!("/^effect \\d+ % of the range; [1-9]\\d* % on average/.test({effect})"));

    // Sensors in any order.
    let open = "(() => { const s = document.getElementById('scene'); s.value = 'cartpole'; s.dispatchEvent(new Event('change')); })()";
    browser.eval(&tab, open);
    browser.until(&tab, "document.body.dataset.sees === 'numbers'");
    browser.until(&tab, &format!("{STEPS} > 20 && /; 0 % on average/.test({effect})"));

    // A file that is no weight file is refused in words, and the scene goes on.
    let choose = "(() => { const all = new DataTransfer(); all.items.add(new File(['{'], 'mine.safetensors')); \
                  const chosen = document.getElementById('weights'); chosen.files = all.files; \
                  chosen.dispatchEvent(new Event('change')); })()";
    browser.eval(&tab, choose);
    browser.until(
        &tab,
        "document.getElementById('toast').textContent.startsWith('mine.safetensors: this is not')",
    );
    assert_eq!(browser.errors, Vec::<String>::new(), "the console is empty");
}

#[test]
fn what_cannot_be_served_is_said() {
    let dir = Dir::new();
    check_fails(&dir, &["lab", "none.safetensors"], &["none.safetensors", "check the path"]);
    check_fails(&dir, &["lab", "--token", "short"], &["8 to 128"]);
    check_fails(&dir, &["lab", "--picture", "oil"], &["oil", "exact"]);
    check_fails(&dir, &["lab", "--host", "192.0.2.1"], &["192.0.2.1", "choose another one with --port"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port().to_string();
    check_fails(&dir, &["lab", "--port", &port], &[&port, "choose another one with --port"]);
}
