//! The page: its files as a server sends them, and all of it in one file.

use foveate_explain::text::base64;

/// The session as a WebAssembly module, compressed by gzip. `cargo xtask web` builds it.
const MODULE: &[u8] = include_bytes!("../foveate.wasm.gz");

const HTML: &str = include_str!("page/index.html");
const CSS: &str = include_str!("page/lab.css");
const ICON: &str = include_str!("page/icon.svg");

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The page's files: path, type, contents.
const FILES: [(&str, &str, &str); 9] = [
    ("/", "text/html; charset=utf-8", HTML),
    ("/lab.css", "text/css; charset=utf-8", CSS),
    ("/lab.js", SCRIPT, include_str!("page/lab.js")),
    ("/connection.js", SCRIPT, include_str!("page/connection.js")),
    ("/display.js", SCRIPT, include_str!("page/display.js")),
    ("/frame.js", SCRIPT, include_str!("page/frame.js")),
    ("/panel.js", SCRIPT, include_str!("page/panel.js")),
    ("/input.js", SCRIPT, include_str!("page/input.js")),
    ("/icon.svg", "image/svg+xml", ICON),
];

/// The scripts of the exported page, each after those that it imports. There, a worker takes the place of the socket.
const SCRIPTS: [(&str, &str); 6] = [
    ("/frame.js", include_str!("page/frame.js")),
    ("/input.js", include_str!("page/input.js")),
    ("/panel.js", include_str!("page/panel.js")),
    ("/display.js", include_str!("page/display.js")),
    ("/connection.js", include_str!("page/local_connection.js")),
    ("/lab.js", include_str!("page/lab.js")),
];

/// The scripts of the worker in which the session runs.
const WORKER: [(&str, &str); 2] =
    [("/engine.js", include_str!("page/engine.js")), ("/worker.js", include_str!("page/worker.js"))];

/// The file of the served page at `path`: its type and contents.
pub fn page_file(path: &str) -> Option<(&'static str, &'static str)> {
    FILES.iter().find(|(known, _, _)| *known == path).map(|&(_, kind, body)| (kind, body))
}

/// The page in one file, with the session and all agents in it: it needs no server, and a browser opens it from a disk, too.
pub fn exported_page() -> String {
    // A closing tag within a script would end it.
    let worker = serde_json::Value::from(bundled(&WORKER)).to_string().replace("</", "<\\/");
    let scripts = format!("const WORKER = {worker};\n{}", bundled(&SCRIPTS));
    let icon = format!("data:image/svg+xml;base64,{}", base64(ICON.as_bytes()));
    HTML.replace("<html ", "<html data-local ")
        .replace("<link rel=\"stylesheet\" href=\"/lab.css\">", &format!("<style>\n{CSS}</style>"))
        .replace("/icon.svg", &icon)
        .replace("  <script type=\"module\" src=\"/lab.js\"></script>\n", "")
        .replace(
            "</body>",
            &format!(
                "<script type=\"text/plain\" id=\"engine\">{}</script>\n<script type=\"module\">\n{scripts}</script>\n</body>",
                base64(MODULE)
            ),
        )
}

/// Modules as one script: each becomes a function of its own, which returns what it exports.
fn bundled(modules: &[(&str, &str)]) -> String {
    let mut out = "const modules = {};\n".to_owned();
    for (path, source) in modules {
        let mut exports = vec![];
        out.push_str(&format!("modules[\"{path}\"] = (() => {{\n"));
        for line in source.lines() {
            if let Some((names, from)) =
                line.strip_prefix("import ").and_then(|rest| rest.trim_end_matches(';').split_once(" from "))
            {
                out.push_str(&format!("const {names} = modules[{from}];\n"));
                continue;
            }
            let declared = line.strip_prefix("export ");
            // `const NAME = …`, `class NAME {`, `async function NAME(…`
            exports.extend(declared.and_then(|rest| {
                let mut words = rest.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
                words.find(|word| !["const", "class", "async", "function"].contains(word))
            }));
            out.push_str(declared.unwrap_or(line));
            out.push('\n');
        }
        out.push_str(&format!("return {{ {} }};\n}})();\n", exports.join(", ")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_become_functions() {
        let modules = [
            ("/a.js", "export const A = 1;\nexport function b(c) {}\nexport class D {\n}\n"),
            ("/e.js", "import { A, b } from \"/a.js\";\nb(A);\n"),
        ];
        assert_eq!(
            bundled(&modules),
            "const modules = {};\nmodules[\"/a.js\"] = (() => {\nconst A = 1;\nfunction b(c) {}\nclass D {\n}\n\
             return { A, b, D };\n})();\nmodules[\"/e.js\"] = (() => {\nconst { A, b } = modules[\"/a.js\"];\nb(A);\n\
             return {  };\n})();\n"
        );
    }

    #[test]
    fn the_exported_page_is_one_small_file() {
        let page = exported_page();
        assert!(page.len() <= 5_000_000, "{} bytes", page.len());
        for part in ["\nimport ", "\nexport ", "src=\"/", "href=\"/", "http:", "https:"] {
            let at = page.find(part).map(|at| page[at..].chars().take(80).collect::<String>());
            // Names of XML are no addresses.
            assert!(at.as_ref().is_none_or(|text| text.contains("www.w3.org")), "{part:?}: {at:?}");
        }
    }
}
