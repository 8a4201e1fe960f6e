//! A browser without scripts: cookies, redirects, and the forms of pages.

use std::collections::BTreeMap;

use regex::Regex;
use reqwest::{Client, RequestBuilder, Response, redirect::Policy};

/// A page after redirects.
pub(super) struct Page {
    pub(super) status: u16,
    /// Path and query of the page.
    pub(super) path: String,
    pub(super) text: String,
    pub(super) headers: reqwest::header::HeaderMap,
}

impl Page {
    /// The names and values of the form with this action, in order.
    #[track_caller]
    pub(super) fn form(&self, action: &str) -> Vec<(String, String)> {
        let forms = Regex::new(r#"(?s)<form[^>]*action="([^"]*)"[^>]*>(.*?)</form>"#).unwrap();
        let form = forms.captures_iter(&self.text).find(|form| unescaped(&form[1]) == action);
        let form = form.unwrap_or_else(|| panic!("no form to {action} in {}", self.text));
        let inputs = Regex::new(r#"<input type="hidden" name="([^"]*)" value="([^"]*)">"#).unwrap();
        let inputs = inputs.captures_iter(form.get(2).unwrap().as_str());
        inputs.map(|input| (unescaped(&input[1]), unescaped(&input[2]))).collect()
    }

    /// The names and values of the form's visible fields, as a browser sends them.
    #[track_caller]
    pub(super) fn fields(&self, action: &str) -> Vec<(String, String)> {
        let forms = Regex::new(r#"(?s)<form[^>]*action="([^"]*)"[^>]*>(.*?)</form>"#).unwrap();
        let form = forms.captures_iter(&self.text).find(|form| unescaped(&form[1]) == action);
        let form = form.unwrap_or_else(|| panic!("no form to {action} in {}", self.text));
        let form = form.get(2).unwrap().as_str();
        let mut fields = Vec::new();
        let all = |pattern: &str| Regex::new(pattern).unwrap();
        for field in all(r#"<input id="[^"]*" name="([^"]*)" value="([^"]*)""#).captures_iter(form)
        {
            let line = unescaped(&field[2]).replace(['\r', '\n'], "");
            fields.push((unescaped(&field[1]), line));
        }
        let boxes = all(r#"<input type="checkbox" name="([^"]*)" value="([^"]*)" checked"#);
        for field in boxes.captures_iter(form) {
            fields.push((unescaped(&field[1]), unescaped(&field[2])));
        }
        let texts = all(r#"(?s)<textarea id="[^"]*" name="([^"]*)"[^>]*>\n?(.*?)</textarea>"#);
        for field in texts.captures_iter(form) {
            let text = unescaped(&field[2]).replace("\r\n", "\n").replace('\r', "\n");
            fields.push((unescaped(&field[1]), text.replace('\n', "\r\n")));
        }
        let chosen = all(r#"<option value="([^"]*)" selected"#);
        for field in all(r#"(?s)<select id="[^"]*" name="([^"]*)".*?</select>"#).captures_iter(form)
        {
            let value = chosen.captures(&field[0]).map(|chosen| unescaped(&chosen[1]));
            fields.push((unescaped(&field[1]), value.unwrap_or_default()));
        }
        fields
    }

    /// The form with one field changed.
    #[track_caller]
    pub(super) fn form_with(&self, action: &str, name: &str, value: &str) -> Vec<(String, String)> {
        let mut form = self.form(action);
        form.retain(|(known, _)| known != name);
        form.push((name.to_owned(), value.to_owned()));
        form
    }

    #[track_caller]
    pub(super) fn shows(&self, text: &str) {
        assert!(
            self.text.contains(text),
            "no {text:?} in {} {}: {}",
            self.status,
            self.path,
            self.text
        );
    }
}

pub(super) fn unescaped(text: &str) -> String {
    let named = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&#13;", "\r"),
        ("&amp;", "&"),
    ];
    named.iter().fold(text.to_owned(), |text, (name, letter)| text.replace(name, letter))
}

#[derive(Clone)]
pub(super) struct Browser {
    pub(super) http: Client,
    /// The address of the service.
    pub(super) base: String,
    /// The origin under which its pages are reached.
    pub(super) origin: String,
    pub(super) cookies: BTreeMap<String, String>,
    /// The last header line that set each cookie.
    pub(super) set: BTreeMap<String, String>,
}

/// The origin headers of a form request.
pub(super) struct Source<'a> {
    pub(super) origin: Option<&'a str>,
    pub(super) site: Option<&'a str>,
}

impl Browser {
    pub(super) fn new(base: &str) -> Self {
        let http = Client::builder().redirect(Policy::none()).build().unwrap();
        let (base, origin) = (base.to_owned(), base.to_owned());
        Self { http, base, origin, cookies: BTreeMap::new(), set: BTreeMap::new() }
    }

    /// The path of an address of this service. Other addresses are returned unchanged.
    fn within(&self, to: &str) -> String {
        let own = to.strip_prefix(&self.origin).or_else(|| to.strip_prefix(&self.base));
        own.unwrap_or(to).to_owned()
    }

    /// Follows redirects.
    pub(super) async fn get(&mut self, path: &str) -> Page {
        let mut path = path.to_owned();
        for _ in 0..10 {
            let page = self.get_one(&path).await;
            match page.headers.get("location") {
                Some(to) if page.status / 100 == 3 => {
                    let to = to.to_str().unwrap();
                    path = self.within(to);
                }
                _ => return page,
            }
        }
        panic!("too many redirects, the last to {path}");
    }

    pub(super) async fn get_one(&mut self, path: &str) -> Page {
        if path.starts_with("http") {
            return page(self.http.get(path).send().await.unwrap(), path).await;
        }
        let request = self.http.get(format!("{}{path}", self.base));
        self.send(request, path).await
    }

    /// Requests a page as a script does in the background.
    pub(super) async fn look(&mut self, path: &str) -> Page {
        self.get_with(path, "x-console-live", "1").await
    }

    /// Requests a page with a header that browsers do not send when a person opens a page.
    pub(super) async fn get_with(&mut self, path: &str, name: &str, value: &str) -> Page {
        let request = self.http.get(format!("{}{path}", self.base)).header(name, value);
        self.send(request, path).await
    }

    /// Sends a form like a page of this service, and follows the redirect.
    pub(super) async fn post(&mut self, path: &str, form: &[(String, String)]) -> Page {
        let origin = self.origin.clone();
        let own = Source { origin: Some(&origin), site: Some("same-origin") };
        let page = self.post_from(path, form, own).await;
        match page.headers.get("location").map(|to| self.within(to.to_str().unwrap())) {
            Some(to) => self.get(&to).await,
            None => page,
        }
    }

    pub(super) async fn post_from(
        &mut self,
        path: &str,
        form: &[(String, String)],
        from: Source<'_>,
    ) -> Page {
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(form);
        let mut request = self
            .http
            .post(format!("{}{path}", self.base))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body.finish());
        for (name, value) in [("origin", from.origin), ("sec-fetch-site", from.site)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        self.send(request, path).await
    }

    async fn send(&mut self, request: RequestBuilder, path: &str) -> Page {
        let cookies: Vec<_> = self.cookies.iter().map(|(n, v)| format!("{n}={v}")).collect();
        let request =
            if cookies.is_empty() { request } else { request.header("cookie", cookies.join("; ")) };
        let answer = request.send().await.unwrap();
        for line in answer.headers().get_all("set-cookie") {
            let line = line.to_str().unwrap();
            let (name, rest) = line.split_once('=').unwrap();
            self.set.insert(name.to_owned(), line.to_owned());
            if line.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                let value = rest.split(';').next().unwrap();
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        page(answer, path).await
    }

    /// Signs in as a user of the demonstration, on the way to `path`.
    pub(super) async fn sign_in(&mut self, role: &str, email: &str, path: &str) -> Page {
        let choice = self.get(path).await;
        let form = person(&choice, role, email);
        self.post("/dev-idp/authorize", &form).await
    }
}

async fn page(answer: Response, path: &str) -> Page {
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    Page { status, path: path.to_owned(), headers, text: answer.text().await.unwrap() }
}

/// The fields of the development provider's form for this person.
pub(super) fn person(choice: &Page, role: &str, email: &str) -> Vec<(String, String)> {
    let (_, asked) = choice.form("/dev-idp/authorize").remove(0);
    let members = [
        ("asked", asked.as_str()),
        ("role", role),
        ("email", email),
        ("tenant_id", "svc:tenant:acme"),
    ];
    members.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}
