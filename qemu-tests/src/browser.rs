//! A browser without a window, driven through the pipe that Chromium reads and writes commands on (DevTools protocol 1.3):
//! what a page says on its console, what an expression in it comes to, how it looks.

use command_fds::{CommandFdExt, FdMapping};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Write, pipe};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;
use xtask::setup::chromium;

/// A browser with one page.
pub struct Browser {
    child: Child,
    commands: File,
    answers: BufReader<File>,
    /// Of the page.
    session: String,
    sent: u64,
    /// Errors and warnings of the console, exceptions, what could not be loaded.
    complaints: Vec<String>,
    _profile: TempDir,
}

/// The descriptors that Chromium takes for `--remote-debugging-pipe`: commands come in at the first.
const PIPE: [i32; 2] = [3, 4];

impl Browser {
    /// Starts one.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start() -> Self {
        let profile = tempfile::tempdir().expect("a folder");
        let (commands, to) = (pipe().expect("a pipe"), pipe().expect("a pipe"));
        let mut command = Command::new(chromium::program().expect("the caller has looked for it"));
        command.args([
            "--headless=new",
            "--disable-gpu",
            "--no-first-run",
            "--remote-debugging-pipe",
        ]);
        // Its sandbox takes rights that neither root nor a container has; what it shows is our own file.
        command.args(["--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"]);
        command.arg(format!("--user-data-dir={}", profile.path().display())).arg("about:blank");
        let fds = [(OwnedFd::from(commands.0), PIPE[0]), (OwnedFd::from(to.1), PIPE[1])];
        let fds = fds.map(|(parent_fd, child_fd)| FdMapping { parent_fd, child_fd });
        command.fd_mappings(fds.into()).expect("two descriptors");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("Chromium starts");
        // The command keeps the other ends open: the browser's end would never be seen.
        drop(command);
        let mut browser = Self {
            child,
            commands: File::from(OwnedFd::from(commands.1)),
            answers: BufReader::new(File::from(OwnedFd::from(to.0))),
            session: String::new(),
            sent: 0,
            complaints: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let id = target["targetId"].clone();
        let attached =
            browser.call("Target.attachToTarget", json!({ "targetId": id, "flatten": true }));
        browser.session = attached["sessionId"].as_str().expect("a session").to_string();
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Opens a file in a window of that width, in the light or the dark.
    ///
    /// # Panics
    /// If the browser ends.
    pub fn open(&mut self, file: &Path, width: u32, dark: bool) {
        self.resize(width);
        let scheme = json!([{ "name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" } }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": scheme }));
        let url = format!("file://{}", file.display());
        self.send("Page.navigate", &json!({ "url": url }));
        self.wait(|message| message["method"] == "Page.loadEventFired");
    }

    /// Gives the window another width.
    pub fn resize(&mut self, width: u32) {
        let metrics =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Whether scripts of pages run.
    pub fn scripts(&mut self, run: bool) {
        self.call("Emulation.setScriptExecutionDisabled", json!({ "value": !run }));
    }

    /// What an expression in the page comes to; promises are waited for.
    ///
    /// # Panics
    /// If it throws.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let asked =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", asked);
        let thrown = &answer["exceptionDetails"];
        assert!(thrown.is_null(), "{expression:.200}: {thrown}");
        answer["result"]["value"].clone()
    }

    /// A picture of the page from its top on, as the bytes of a PNG file in base64.
    ///
    /// # Panics
    /// If there is none.
    pub fn picture(&mut self, height: u32) -> String {
        let width = self.evaluate("innerWidth");
        let clip = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        let asked = json!({ "format": "png", "clip": clip, "captureBeyondViewport": true });
        self.call("Page.captureScreenshot", asked)["data"].as_str().expect("a picture").to_string()
    }

    /// Shows the page as on paper, or as on a screen.
    pub fn on_paper(&mut self, paper: bool) {
        self.call(
            "Emulation.setEmulatedMedia",
            json!({ "media": if paper { "print" } else { "" } }),
        );
    }

    /// Prints the page, with what it does before and after that. Returns the PDF file in base64.
    ///
    /// # Panics
    /// If nothing is printed.
    pub fn print(&mut self) -> String {
        let printed = self.call("Page.printToPDF", json!({ "printBackground": false }));
        printed["data"].as_str().expect("a PDF file").to_string()
    }

    /// Everything that was complained of since the last call.
    pub fn complaints(&mut self) -> Vec<String> {
        // What is on its way comes before the answer to this.
        self.evaluate("0");
        std::mem::take(&mut self.complaints)
    }

    fn send(&mut self, method: &str, parameters: &Value) -> u64 {
        self.sent += 1;
        let mut message = json!({ "id": self.sent, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        let text = format!("{message}\0");
        self.commands.write_all(text.as_bytes()).expect("the browser listens");
        self.sent
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        let id = self.send(method, &parameters);
        let mut answer = self.wait(|message| message["id"] == id);
        let error = &answer["error"];
        assert!(error.is_null(), "{method}: {error}");
        answer["result"].take()
    }

    fn wait(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut text = Vec::new();
            self.answers.read_until(0, &mut text).expect("the browser answers");
            assert!(text.pop() == Some(0), "the browser has ended");
            let message: Value = serde_json::from_slice(&text).expect("JSON");
            self.note(&message);
            if wanted(&message) {
                return message;
            }
        }
    }

    fn note(&mut self, message: &Value) {
        let of = &message["params"];
        let complaint = match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => Some(of["exceptionDetails"].to_string()),
            Some("Runtime.consoleAPICalled")
                if of["type"] == "error" || of["type"] == "warning" =>
            {
                Some(of["args"].to_string())
            }
            Some("Log.entryAdded") => Some(of["entry"].to_string()),
            // An alert would wait for somebody for ever.
            Some("Page.javascriptDialogOpening") => {
                self.send("Page.handleJavaScriptDialog", &json!({ "accept": true }));
                Some(format!("a dialog: {}", of["message"]))
            }
            _ => None,
        };
        self.complaints.extend(complaint);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
