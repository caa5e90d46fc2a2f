//! Controls a headless Chromium through its debugging protocol.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tungstenite::{Message, WebSocket};

/// Maximum number of 100 ms waits: minutes, for busy machines.
const PATIENCE: usize = 1800;

/// The path of Chromium: `$FOVEATE_CHROMIUM`, or one of the usual names on the path.
#[track_caller]
pub(crate) fn chromium() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("FOVEATE_CHROMIUM") {
        return Some(path.into());
    }
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    let found =
        folders.iter().flat_map(|folder| names.map(|name| folder.join(name))).find(|path| path.exists());
    if found.is_none() {
        foveate_toy::needs::skip("neither FOVEATE_CHROMIUM nor the PATH names a Chromium");
    }
    found
}

/// A separate browser process with its own profile.
pub(crate) struct Browser {
    child: Child,
    socket: WebSocket<TcpStream>,
    next: u64,
    /// Errors of the pages.
    pub(crate) errors: Vec<String>,
    _profile: tempfile::TempDir,
}

/// A tab of the browser.
#[derive(Clone)]
pub(crate) struct Tab(String);

impl Browser {
    pub(crate) fn start(program: &Path) -> Self {
        let profile = tempfile::tempdir().expect("a temporary folder");
        let mut child = Command::new(program)
            // There is no sandbox for root, as in a container; the browser only opens our own page.
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args(["--remote-debugging-port=0", "--hide-scrollbars", "--force-color-profile=srgb"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the browser starts");
        let file = profile.path().join("DevToolsActivePort");
        for _ in 0..PATIENCE {
            let text = fs::read_to_string(&file).unwrap_or_default();
            if let Some((port, path)) = text.split_once('\n')
                && !path.is_empty()
            {
                let stream = TcpStream::connect(format!("127.0.0.1:{port}")).expect("it listens");
                stream.set_read_timeout(Some(Duration::from_mins(3))).expect("a good socket");
                let url = format!("ws://127.0.0.1:{port}{}", path.trim());
                let (socket, _) = tungstenite::client(url, stream).expect("it speaks WebSocket");
                return Browser { child, socket, next: 0, errors: vec![], _profile: profile };
            }
            if let Ok(Some(status)) = child.try_wait() {
                panic!("the browser ended: {status}");
            }
            thread::sleep(Duration::from_millis(100));
        }
        let _ = child.kill();
        panic!("the browser does not listen");
    }

    /// Calls a method of the tab or of the browser itself.
    fn call(&mut self, tab: Option<&Tab>, method: &str, params: impl Into<Value>) -> Value {
        let params: Value = params.into();
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": params });
        if let Some(Tab(session)) = tab {
            message["sessionId"] = session.as_str().into();
        }
        self.socket.send(Message::text(message.to_string())).expect("it listens");
        loop {
            let Message::Text(text) = self.socket.read().expect("it answers") else { continue };
            let answer: Value = serde_json::from_str(&text).expect("JSON");
            if answer["id"] == self.next {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
            let params = &answer["params"];
            let bad = match answer["method"].as_str().unwrap_or_default() {
                "Runtime.exceptionThrown" => true,
                "Runtime.consoleAPICalled" => {
                    matches!(params["type"].as_str(), Some("error" | "warning" | "assert"))
                }
                "Log.entryAdded" => matches!(params["entry"]["level"].as_str(), Some("error" | "warning")),
                _ => false,
            };
            if bad {
                self.errors.push(params.to_string());
            }
        }
    }

    /// A new tab with a window of this size, showing `url`.
    pub(crate) fn open(&mut self, url: &str, (width, height, mobile): (u32, u32, bool)) -> Tab {
        let made = self.call(None, "Target.createTarget", json!({ "url": "about:blank", "newWindow": true }));
        let attach = json!({ "targetId": made["targetId"], "flatten": true });
        let attached = self.call(None, "Target.attachToTarget", attach);
        let tab = Tab(attached["sessionId"].as_str().expect("a session").to_owned());
        for domain in ["Page", "Runtime", "Log"] {
            self.call(Some(&tab), &format!("{domain}.enable"), json!({}));
        }
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.call(Some(&tab), "Emulation.setDeviceMetricsOverride", metrics);
        // Without this, tabs in the background are not rendered.
        self.call(Some(&tab), "Emulation.setFocusEmulationEnabled", json!({ "enabled": true }));
        self.call(Some(&tab), "Page.navigate", json!({ "url": url }));
        tab
    }

    /// The value of an expression on the page.
    pub(crate) fn eval(&mut self, tab: &Tab, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call(Some(tab), "Runtime.evaluate", params);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true on the page.
    #[track_caller]
    pub(crate) fn until(&mut self, tab: &Tab, expression: &str) {
        for _ in 0..PATIENCE {
            if self.eval(tab, &format!("!!({expression})")) == true {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
        let shown = self.eval(tab, "document.body.innerText");
        panic!("never true: {expression}\non the page: {shown}\nerrors: {:?}", self.errors);
    }

    /// Presses a key, and releases it unless `held`.
    pub(crate) fn key(&mut self, tab: &Tab, key: &str, held: bool) {
        let mut down = json!({ "type": "keyDown", "key": key });
        if key.chars().count() == 1 {
            down["text"] = key.into();
        }
        self.call(Some(tab), "Input.dispatchKeyEvent", down);
        if !held {
            self.lift(tab, key);
        }
    }

    pub(crate) fn lift(&mut self, tab: &Tab, key: &str) {
        self.call(Some(tab), "Input.dispatchKeyEvent", json!({ "type": "keyUp", "key": key }));
    }

    /// Drags the mouse over the element; the points are fractions of its box.
    pub(crate) fn drag(&mut self, tab: &Tab, selector: &str, from: [f64; 2], to: [f64; 2]) {
        let rect = self.eval(
            tab,
            &format!("(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{ block: 'center' }}); const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; }})()"),
        );
        let side = |i: usize| rect[i].as_f64().expect("a number");
        let steps = [
            ("mouseMoved", from),
            ("mousePressed", from),
            ("mouseMoved", to),
            ("mouseMoved", to),
            ("mouseReleased", to),
        ];
        for (kind, [x, y]) in steps {
            let (x, y) = (side(0) + x * side(2), side(1) + y * side(3));
            let pressed = i32::from(kind != "mouseReleased");
            let event = json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": pressed, "clickCount": 1 });
            self.call(Some(tab), "Input.dispatchMouseEvent", event);
        }
    }

    /// A screenshot of the window as a base64 PNG.
    pub(crate) fn screenshot(&mut self, tab: &Tab) -> String {
        let shot = self.call(Some(tab), "Page.captureScreenshot", json!({ "format": "png" }));
        shot["data"].as_str().expect("a picture").to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.socket.send(Message::text(r#"{"id":0,"method":"Browser.close"}"#));
        for _ in 0..50 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
