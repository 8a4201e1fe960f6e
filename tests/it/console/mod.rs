//! The console: sign-in, the contents of pages, and the protection of forms.

mod agents;
mod approvers;
mod approving;
mod authority;
mod browser;
mod budgets;
mod choices;
mod consequences;
mod decisions;
mod definitions;
mod ending;
mod failed;
mod foreseen;
mod forms;
mod fresh;
mod hand_made;
mod in_a_browser;
mod inbox;
mod issuers;
mod kept;
mod keys;
mod live;
mod logout;
mod loosened;
mod messages;
mod new_agent;
mod new_policy;
mod overview;
mod payees;
mod policies;
mod provider;
mod reasons;
mod receipts;
mod record_forms;
mod records;
mod refresh;
mod renewing;
mod reviewing;
mod roles;
mod search;
mod shown;
mod sign_in;
mod stop;
mod targets;

use serde_json::{Value, json};

use crate::support::{Answered, Client, Plain, TestApp, asking};
use browser::Browser;

const APPROVER: (&str, &str) = ("approver", "approver@acme.example");

/// A service with the demonstration, and a client for its agents.
struct Console {
    app: TestApp,
    agent: Client,
}

impl Console {
    async fn start() -> Self {
        let app = TestApp::seeded().await;
        let key = app.demo().await.api_key;
        let agent = app.client(&key);
        Self { app, agent }
    }

    fn browser(&self) -> Browser {
        Browser::new(self.app.base_url())
    }

    /// A browser with a signed-in user.
    async fn signed_in(&self, (role, email): (&str, &str)) -> Browser {
        let mut browser = self.browser();
        let page = browser.sign_in(role, email, "/console").await;
        assert_eq!((page.status, page.path.as_str()), (200, "/console"), "{}", page.text);
        browser
    }

    /// A browser with a signed-in user, on the way to a page.
    async fn signed_in_at(&self, (role, email): (&str, &str), path: &str) -> Browser {
        let mut browser = self.browser();
        let page = browser.sign_in(role, email, path).await;
        assert_eq!((page.status, page.path.as_str()), (200, path), "{}", page.text);
        browser
    }

    /// Opens a request for approval; returns its id.
    async fn held(&self, amount: f64) -> String {
        self.held_with(asking(amount, "DE")).await
    }

    async fn held_with(&self, question: Value) -> String {
        let (status, held) = self.agent.evaluate(question).await;
        assert_eq!((status, held["decision"].text()), (200, "require_approval"), "{held:#}");
        held["approval_id"].as_str().unwrap().to_owned()
    }

    /// The request as the API returns it.
    async fn approval(&self, id: &str) -> Value {
        let found = self.app.owner().get_approval(id).await.assert_status(200);
        found["approval"].clone()
    }
}

#[track_caller]
fn assert_waits(approval: &Value) {
    let (state, given) = (&approval["state"], &approval["given"]);
    assert_eq!((state, given), (&json!("pending"), &json!(0)), "{approval:#}");
}
