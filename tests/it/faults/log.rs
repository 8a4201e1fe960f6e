//! The log at its most verbose level shows what happened, without secrets.

use authority_store::Address;
use diesel_async::SimpleAsyncConnection;

use super::process::{Folder, Service, allowed};
use crate::support::{Client, Plain, only};

const SECRET: &str = "marker-5be1c09a";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_names_what_happens_and_holds_no_context_token_or_key() {
    let folder = Folder::new("log");
    let mut service = Service::logging("trace", &folder);
    let mut body = allowed();
    body["context"]["note"] = SECRET.into();
    let (status, decided) = service.client.evaluate(body).await;
    assert_eq!((status, decided["decision"].text()), (200, "allow"), "{decided}");
    let forger = Client::new(&service.client.base, &format!("svc_{SECRET}"));
    let forged = forger.evaluate(allowed()).await;
    assert_eq!(forged.0, 401);
    service.stop();

    let log = service.logged();
    assert!(log.contains("\"message\":\"decided\""), "decisions are not logged");
    assert!(log.contains(decided["decision_id"].as_str().unwrap()));
    assert!(!log.contains(SECRET), "{}", log.lines().find(|line| line.contains(SECRET)).unwrap());
    assert!(!log.contains("\"name\":\"request\""), "a request has a span without traces");
    let key = service.client.token.rsplit('_').nth(1).unwrap();
    assert!(!log.contains(key), "the secret of an API key is in the log");
}

/// A table with a constraint, to which a trigger copies each tenant's notes. PostgreSQL includes
/// rows in DETAIL only for tables without row-level security.
const HOLD: &str = "
    CREATE TABLE held (notes text CONSTRAINT held_unique UNIQUE
                                  CONSTRAINT held_check CHECK (notes NOT LIKE '%!'));
    CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
        BEGIN INSERT INTO public.held VALUES (NEW.notes); RETURN NEW; END $$;
    CREATE TRIGGER hold AFTER UPDATE ON tenants FOR EACH ROW EXECUTE FUNCTION hold()";

/// The DETAIL of PostgreSQL's errors contains the values of rows, which must not be logged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_value_of_a_row_that_the_database_refuses_is_logged_or_answered() {
    let folder = Folder::new("detail");
    let mut service = Service::logging("trace", &folder);
    let owner = service.owner(&folder);
    let database = folder.embedded().await;
    let mut db = Address::parse(&database.owner_url()).unwrap().connect().await.unwrap();
    db.batch_execute(HOLD).await.unwrap();
    db.batch_execute(&format!("INSERT INTO held VALUES ('{SECRET}')")).await.unwrap();
    for (refused, notes) in [(409, SECRET.to_owned()), (500, format!("{SECRET}!"))] {
        let (status, answer) = owner.update_tenant("acme", only("notes", &notes)).await;
        assert_eq!(status, refused, "{answer}");
        assert!(!answer.to_string().contains(SECRET), "{answer}");
    }
    service.stop();
    let log = service.logged();
    assert!(log.contains("held_check"), "the log does not name the violated constraint");
    let told = log.lines().find(|line| line.contains(SECRET));
    assert_eq!(told, None);
}
