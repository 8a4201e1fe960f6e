//! Records: every kind in the protos, the contents and actions for each role, and the forms that
//! change records.

use std::collections::BTreeMap;

use authority_model::{DESCRIPTORS, access::RULES};
use prost_reflect::{DescriptorPool, MessageDescriptor, MethodDescriptor, ServiceDescriptor};
use regex::Regex;

use super::{
    Console,
    browser::{Browser, Page},
};

const OWNER: (&str, &str) = ("owner", "operator@localhost");
const HOSTILE: &str = "\"><script>alert(1)</script>javascript:x\u{202e}'\u{200b}";

/// A kind of record in the protos.
struct Kind {
    path: String,
    table: String,
    message: MessageDescriptor,
    service: ServiceDescriptor,
    list: String,
}

/// Returns every message that is a record, except approvals, with the service that lists it.
fn kinds() -> Vec<Kind> {
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    let resource = pool.get_extension_by_name("google.api.resource").unwrap();
    let records = pool.all_messages().filter(|m| m.options().has_extension(&resource));
    let kinds = records.filter(|message| message.name() != "Approval").map(|message| {
        let option = message.options().get_extension(&resource).into_owned();
        let table = option.as_message().unwrap().get_field_by_name("plural").unwrap();
        let table = table.as_str().unwrap().to_owned();
        let found = pool.services().find_map(|service| {
            let lists = service.methods().find(|method| {
                let mut fields = method.output().fields().collect::<Vec<_>>().into_iter();
                let is_list = fields
                    .any(|field| field.is_list() && field.kind().as_message() == Some(&message));
                method.name().starts_with("List") && is_list
            })?;
            let list = format!("/{}/{}", service.full_name(), lists.name());
            Some((service.clone(), list))
        });
        let (service, list) = found.unwrap_or_else(|| panic!("nothing lists {}", message.name()));
        Kind { path: table.replace('_', "-"), table, message, service, list }
    });
    kinds.collect()
}

/// Whether the access table permits an operation for a role; `owner` is the installation's owner.
fn opens(rpc: &str, role: &str) -> bool {
    let (_, bindings) = RULES.iter().find(|(known, _)| *known == rpc).unwrap();
    bindings.iter().any(|binding| match role {
        "owner" => binding.access.owner,
        role => binding.access.member || binding.access.roles.contains(&role),
    })
}

/// The addresses of a page's links that match, without duplicates.
pub(super) fn links(page: &Page, pattern: &str) -> Vec<String> {
    let pattern = Regex::new(&format!("href=\"({pattern})\"")).unwrap();
    let mut links: Vec<_> = pattern.captures_iter(&page.text).map(|c| c[1].to_owned()).collect();
    links.sort();
    links.dedup();
    links
}

/// The kinds in the page's menu.
fn menu(page: &Page) -> Vec<String> {
    let links = links(page, "/console/records/[a-z-]+");
    links.iter().map(|link| link.rsplit('/').next().unwrap().to_owned()).collect()
}

pub(super) async fn as_role(console: &Console, role: &str) -> (Browser, Page) {
    let mut browser = console.browser();
    let email = if role == "owner" { OWNER.1.to_owned() } else { format!("{role}@acme.example") };
    browser.sign_in(role, &email, "/console/records").await;
    let page = browser.get("/console/records").await;
    (browser, page)
}

/// The first record in the list of a kind.
async fn first(browser: &mut Browser, kind: &str) -> Option<String> {
    let page = browser.get(&format!("/console/records/{kind}")).await;
    assert_eq!(page.status, 200, "{kind}: {}", page.text);
    links(&page, &format!("/console/records/{kind}/[A-Za-z0-9%_-]{{20,}}")).first().cloned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_sees_and_can_do_exactly_what_the_api_allows() {
    let console = Console::start().await;
    let (kinds, mut owner) = (kinds(), as_role(&console, "owner").await.0);
    let mut records = BTreeMap::new();
    for kind in &kinds {
        if let Some(address) = first(&mut owner, &kind.path).await {
            records.insert(kind.path.as_str(), address);
        }
    }
    assert!(records.len() >= 12, "{records:?}");
    for role in ["owner", "admin", "approver", "legal", "auditor", "member", "viewer"] {
        let (mut browser, page) = as_role(&console, role).await;
        let listed = kinds.iter().filter(|kind| opens(&kind.list, role));
        let mut listed: Vec<_> = listed.map(|kind| kind.path.clone()).collect();
        listed.sort();
        assert_eq!(menu(&page), listed, "{role}");
        for kind in &kinds {
            let page = browser.get(&format!("/console/records/{}", kind.path)).await;
            let expected = if opens(&kind.list, role) { 200 } else { 403 };
            assert_eq!(page.status, expected, "{role} {}", kind.path);
            let Some(address) = records.get(kind.path.as_str()) else { continue };
            assert_verbs(&mut browser, role, kind, address).await;
        }
    }
}

/// Whether the contract always refuses the method, with status 405.
fn is_always_refused(method: &MethodDescriptor) -> bool {
    let rest = method.parent_pool().get_extension_by_name("authority.rest.v1.rest").unwrap();
    let rest = method.options().get_extension(&rest).into_owned();
    let refusals = rest.as_message().unwrap().get_field_by_name("refusals").unwrap();
    refusals.as_list().unwrap().iter().any(|status| status.as_i32() == Some(405))
}

/// Checks that the record's page has exactly the operations and forms that the role may use.
async fn assert_verbs(browser: &mut Browser, role: &str, kind: &Kind, address: &str) {
    let rpc = |name: &str| format!("/{}/{name}", kind.service.full_name());
    let name = kind.message.name();
    let page = browser.get(address).await;
    let expected = if opens(&rpc(&format!("Get{name}")), role) { 200 } else { 403 };
    assert_eq!(page.status, expected, "{role} {address}: {}", page.text);
    let shown = links(&page, &format!("{}/[a-z-]+", regex::escape(address)));
    for verb in ["Update", "Delete", "Revoke", "Suspend", "Reinstate", "Narrow", "Rotate"] {
        let method = kind.service.methods().find(|m| m.name() == format!("{verb}{name}"));
        let Some(method) = method.filter(|method| !is_always_refused(method)) else { continue };
        let path = format!("{address}/{}", verb.to_lowercase());
        let may = opens(&rpc(method.name()), role);
        // An active delegation can't be reinstated, and its page explains this.
        let is_offered = may && expected == 200 && verb != "Reinstate";
        assert_eq!(shown.contains(&path), is_offered, "{role} {path}");
        let is_barred = page.text.contains("Reinstate, as it is active");
        assert!(verb != "Reinstate" || is_barred == (may && expected == 200), "{role} {path}");
        let form = browser.get(&path).await;
        assert_eq!(form.status == 200, may, "{role} {path}");
        if !may {
            let csrf = browser.get("/console/records").await.form("/console/sign-out");
            assert_eq!(browser.post(&path, &csrf).await.status, 403, "{role} {path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_member_of_a_record_is_on_its_page() {
    let console = Console::start().await;
    let mut owner = as_role(&console, "owner").await.0;
    let named = Regex::new("<(?:dt|span) title=\"([a-z0-9_]+)[:\"]").unwrap();
    let mut seen = 0;
    for kind in kinds() {
        let Some(address) = first(&mut owner, &kind.path).await else { continue };
        let page = owner.get(&address).await;
        let mut shown: Vec<_> = named.captures_iter(&page.text).map(|c| c[1].to_owned()).collect();
        shown.sort();
        let mut members: Vec<_> =
            kind.message.fields().map(|field| field.name().to_owned()).collect();
        members.sort();
        assert_eq!(shown, members, "{address}: {}", page.text);
        // The meaning of each field is also in the page: titles are not accessible by touch or
        // keyboard.
        for name in members {
            page.shows(&format!("<dd><code>{name}</code>"));
        }
        seen += 1;
    }
    assert!(seen >= 12, "{seen}");
    let tool = first(&mut owner, "tools").await.unwrap();
    let page = owner.get(&tool).await;
    page.shows("title=\"function_signature: Its signature: pay(amount).\"");
    page.shows("<h2 id=\"history\">History</h2>");
    page.shows("The record as it was");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_text_of_every_record_is_shown_escaped() {
    let console = Console::start().await;
    let kinds = kinds();
    for kind in &kinds {
        console.app.database.run(&hostile(&kind.table)).await;
    }
    let mut owner = as_role(&console, "owner").await.0;
    const SHOWN: &str = "javascript:x⟨U+202E⟩&#39;⟨U+200B⟩";
    let fields = Regex::new("(?s) value=\"[^\"]*\"|<textarea.*?</textarea>").unwrap();
    let mut seen = 0;
    for kind in &kinds {
        let list = format!("/console/records/{}", kind.path);
        let Some(address) = first(&mut owner, &kind.path).await else { continue };
        seen += 1;
        let record = owner.get(&address).await;
        let own = links(&record, "/console/(?:agents|delegations|policies|webhooks)/[^\"]+");
        let steps = own.iter().flat_map(|own| [own.clone(), format!("{own}/retire")]);
        let forms = [format!("{address}/update"), format!("{address}/delete")];
        assert!(record.text.contains(SHOWN), "{address}: {}", record.text);
        for path in [list, address].into_iter().chain(forms).chain(steps) {
            let page = owner.get(&path).await;
            // An address without a page has the same answer as any other path.
            if page.status == 404 && !page.text.contains("<html") {
                continue;
            }
            assert!(page.status < 500, "{path}: {}", page.text);
            assert_eq!(page.text.matches("<script").count(), 2, "{path}: {}", page.text);
            // A field sends back the exact value.
            let text = fields.replace_all(&page.text, "");
            assert!(!text.contains(['\u{202e}', '\u{200b}']), "{path}: {text}");
            assert!(!page.text.contains("href=\"javascript:"), "{path}");
        }
    }
    assert!(seen >= 12, "{seen}");
    for path in ["tools/new/create?m.name=", "tools?m.state=", "tools/", "tools/new/", ""] {
        let path = format!("/console/records/{path}{HOSTILE}").replace("</", "<%2F");
        let page = owner.get(&path).await;
        assert_eq!(page.text.matches("<script").count(), 2, "{path}: {}", page.text);
    }
}

/// Writes hostile texts to every column that accepts them. If the table has rows, at least one
/// column must accept them. A column with a constraint against them keeps its value.
fn hostile(table: &str) -> String {
    let text = HOSTILE.replace('\'', "''");
    format!(
        "DO $$ DECLARE c record; n bigint; filled bigint := 0; BEGIN FOR c IN
           SELECT column_name AS name, udt_name AS kind FROM information_schema.columns
           WHERE table_schema = 'public' AND table_name = '{table}' AND is_generated = 'NEVER'
             AND column_name NOT IN ('id', 'tenant_id', 'state', 'status')
         LOOP BEGIN
           CASE c.kind
             WHEN 'text' THEN
               EXECUTE format('UPDATE public.%I SET %I = %L || id', '{table}', c.name, '{text}');
             WHEN '_text' THEN
               EXECUTE format('UPDATE public.%I SET %I = ARRAY[%L]', '{table}', c.name, '{text}');
             WHEN 'jsonb' THEN
               IF c.name = 'metadata' THEN
                 EXECUTE format('UPDATE public.%I SET %I = jsonb_build_object(%L, %L)',
                   '{table}', c.name, '{text}', '{text}');
               END IF;
             ELSE CONTINUE;
           END CASE;
           GET DIAGNOSTICS n = ROW_COUNT;
           filled := filled + n;
         EXCEPTION WHEN integrity_constraint_violation THEN NULL; END; END LOOP;
         EXECUTE 'SELECT count(*) FROM public.{table}' INTO n;
         ASSERT n = 0 OR filled > 0, 'no column of {table} takes such a text'; END $$"
    )
}
