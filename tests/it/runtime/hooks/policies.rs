//! The starting policies for coding agents.

use serde_json::{Value, json};

use super::{SHELL, asked, started};
use crate::support::coder::policy;
use crate::support::{nothing, only};

const EDITS: &str = include_str!("../../../../crates/console/src/policies/starts/code_edits.cedar");
const SECRETS: &str =
    include_str!("../../../../crates/console/src/policies/starts/code_secrets.cedar");
const MCP: &str = include_str!("../../../../crates/console/src/policies/starts/code_mcp.cedar");

/// Sends calls with a policy. A call is permitted, or its reason begins with the words.
async fn expect(cedar: &str, calls: impl IntoIterator<Item = (&str, Value, &str)>) {
    let (app, client) = started().await;
    policy(&app, cedar).await;
    let mut faults = Vec::new();
    for (tool, input, expected) in calls {
        let reason = asked(&client, tool, input.clone()).await;
        let is_right = match &reason {
            None => expected.is_empty(),
            Some(reason) => !expected.is_empty() && reason.starts_with(expected),
        };
        if !is_right {
            faults.push(format!("{tool} {input}: {reason:?}"));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Commands, by the reason for which the policy of shell commands holds them.
const COMMANDS: [(&str, &[&str]); 6] = [
    (
        "",
        &[
            "ls",
            "ls -la",
            "cargo build",
            "cargo build --release",
            "cargo fmt --all",
            "cargo test --workspace",
            "git status",
            "git diff --stat",
            "git status && git commit -m 'Fix it'",
            "git switch -c fix",
            "git push",
            "git push origin main",
            "git push -u origin new-feature",
            "git push origin HEAD:main",
            "npm run format",
            "npm test",
            "npm ci",
            "docker build -t a .",
            "kubectl get pods",
            "gh pr list",
            "gh api repos/a/b/pulls",
            "git add .gitignore",
            "git clone https://example.org/a.git",
            "mkdir -p build",
            "curl -s https://example.org/data.json",
            "curl -fsSL https://example.org/install.sh",
            "wget https://example.org/a",
            "grep -rn main src",
            "npm run build",
            "python3 -m pytest",
            "sed -n 1,5p a",
            "cat a | head",
            "git log --oneline -5",
            "git branch",
            "git fetch origin",
            "make",
            "go test ./...",
            "git stash",
            "git tag v1",
            "cargo clippy 2>&1 | tail -5",
        ],
    ),
    (
        "Held for approval: x_code_delete",
        &[
            "rm -rf build",
            "rm build -rf",
            "rm build/a.o",
            "rm\t-rf\tbuild",
            "find . | xargs rm",
            "find . -print0 | xargs -0 -n 1 rm -f",
            "ls | xargs /bin/rm;",
            "cd a && rm -r  b",
            "sudo rm x",
            "sh -c 'rm x'",
            "git rm a",
            "rmdir x",
            "unlink x",
            "docker rm a",
            "docker rmi a",
            "docker system prune",
            "docker volume remove a",
            "kubectl delete pod a",
            "kubectl -n a delete pod b",
            "terraform destroy",
            "find . -name '*.o' -delete",
            "find . -type f -execdir rm {} +",
            "git clean -fdx",
            "git -C a clean -f",
            "git reset --hard HEAD~3",
            "git reset HEAD~3 --hard",
            "git checkout -- a",
            "git checkout .",
            "git checkout main a",
            "git restore a",
            "git switch main -f",
            "git switch --discard-changes main",
            "git branch -D a",
            "git branch a -d",
            "git branch --delete a",
            "git tag -d v1",
            "git stash drop",
            "shred a",
            "truncate -s 0 a",
            "dd if=a of=b",
            "dd\tof=b",
            "find . | parallel rm",
            "git tag --delete v1",
            "git branch -qD a",
            "git switch -qf main",
            "git switch -C main HEAD~3",
            "git worktree remove --force a",
            "podman system prune",
            "docker compose down -v",
            "docker compose down --volumes",
            "helm uninstall a",
            "gh repo delete a/b --yes",
        ],
    ),
    (
        "Held for approval: x_code_force_push",
        &[
            "git push --force origin main",
            "git push origin main --force-with-lease",
            "git push --forc",
            "git -C x push -f",
            "git push origin main -f",
            "git push -uf origin main",
            "git push -vf",
            "git push -qvf origin main",
            "git push\t-f",
            "git push origin +main",
            "git push origin \"+main\"",
            "git push origin :main",
            "git push origin \":main\"",
            "git push origin ':main'",
            "git push origin --delete main",
            "git push origin main -d",
            "git push --mirror",
            "git push origin --prune",
        ],
    ),
    (
        "Held for approval: x_code_publish",
        &[
            "npm publish",
            "npm pub",
            "npm --workspace a pub",
            "yarn npm publish",
            "pnpm -r publish",
            "cargo publish -p a",
            "cargo publish",
            "poetry publish",
            "twine upload dist/*",
            "python3 -m twine upload a",
            "docker push a/b",
            "docker buildx build --push .",
            "podman push a",
            "gem push a",
            "dotnet nuget push a",
            "gh release create v1",
            "gh gist create a",
        ],
    ),
    (
        "Held for approval: x_code_send",
        &[
            "curl -d @data https://example.org",
            "curl https://example.org -d @data",
            "curl https://example.org -dX",
            "curl -sd a=1 https://example.org",
            "curl -sSd@a https://example.org",
            "curl\t-d\ta\thttps://example.org",
            "curl --data-binary @- https://example.org",
            "curl --dat a https://example.org",
            "curl --json @a https://example.org",
            "curl -XPOST https://example.org",
            "curl -sXPOST https://example.org",
            "curl https://example.org -X DELETE",
            "curl --request POST https://example.org",
            "curl -F a=@b https://example.org",
            "curl -sT a https://example.org",
            "curl --upload-file a https://example.org",
            "wget --post-file=a https://example.org",
            "wget --body-data=a --method=PUT https://example.org",
            "wget https://example.org --body-file a",
            "scp a host:",
            "scp\ta\thost:",
            "sftp host",
            "ssh host ls",
            "ssh\thost\tls",
            "rsync -a a host:",
            "cat a | nc example.org 80",
            "nc\texample.org 80",
            "ncat example.org 80",
            "cat a > /dev/tcp/example.org/80",
            "gh api -X POST repos/a/b/issues",
            "gh api repos/a/b/issues --method POST",
            "gh api repos/a/b/issues -f title=a",
            "gh api repos/a/b/issues -F body=@a",
            "gh api repos/a/b/issues --raw-field title=a",
            "gh api repos/a/b/issues --input a",
            "aws s3 cp a s3://b",
            "aws s3 sync . s3://b",
            "aws s3api put-object --bucket b --key a --body a",
        ],
    ),
    (
        "Held for approval: x_code_settings",
        &[
            "echo '{}' > .claude/settings.json",
            "sed -i s/hooks/a/ /home/dev/project/.claude/settings.json",
            "mv .claude/settings.json x",
            "cat a | tee ~/.claude.json",
            "cp a .cursor/hooks.json",
            "echo '{}' > .mcp.json",
            "cp x .git/hooks/pre-commit",
        ],
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shell_commands_that_delete_push_publish_or_send_are_held() {
    let calls = COMMANDS.iter().flat_map(|(expected, commands)| {
        commands.iter().map(move |command| ("Bash", only("command", command), *expected))
    });
    // A call without a command is held.
    let without = [("Bash", nothing(), "Held for approval"), ("Read", only("file_path", "a"), "")];
    Box::pin(expect(SHELL, calls.chain(without))).await;
}

/// The texts of commands that the policy does not recognise. The guide names them as its limits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shell_policy_does_not_stop_these() {
    let commands = [
        "python3 -c 'import shutil; shutil.rmtree(\"build\")'",
        "r\\m -rf build",
        "./clean.sh",
        "$CMD build",
        "RM -rf build",
        "echo a > b",
        "mv a b",
        "git push -qd origin main",
        "gsutil cp a gs://b",
    ];
    Box::pin(expect(SHELL, commands.map(|command| ("Bash", only("command", command), "")))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_are_free_in_the_project_alone() {
    let held = "Held for approval: x_code_outside";
    let paths = [
        ("/home/dev/project/src/main.rs", ""),
        ("/home/dev/project/a.b", ""),
        ("/home/dev/project", held),
        ("/home/dev/project2/a", held),
        ("/home/dev/project/../.bashrc", held),
        ("/home/dev/project/a/..", held),
        ("/home/dev/project/.claude/settings.json", held),
        ("/home/dev/project/.mcp.json", held),
        ("/home/dev/project/.git", held),
        ("/home/dev/project/.git/hooks/pre-commit", held),
        ("/home/dev/.bashrc", held),
        ("src/main.rs", held),
        ("", held),
    ];
    let edits = paths.map(|(path, expected)| {
        ("Edit", json!({"file_path": path, "old_string": "a", "new_string": "b"}), expected)
    });
    let others = [
        ("Write", json!({"file_path": "/home/dev/project/a", "content": ""}), ""),
        ("Write", only("content", ""), held),
        ("NotebookEdit", only("notebook_path", "/home/dev/project/a.ipynb"), held),
        ("Read", only("file_path", "/etc/hosts"), ""),
    ];
    Box::pin(expect(EDITS, edits.into_iter().chain(others))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_with_secrets_are_denied() {
    let denied = "Denied: x_code_secret";
    let calls = [
        ("Read", only("file_path", "/home/dev/project/src/main.rs"), ""),
        ("Grep", only("pattern", "a"), ""),
        ("Read", only("file_path", "/home/dev/project/.env"), denied),
        ("Read", only("file_path", "/home/dev/project/.env.local"), denied),
        ("Read", only("file_path", "/home/dev/.ssh/config"), denied),
        ("Read", only("file_path", ".ssh/config"), denied),
        ("Read", nothing(), ""),
        ("Grep", json!({"pattern": "a", "path": "/home/dev/project/src", "glob": "*.rs"}), ""),
        ("Grep", json!({"pattern": "a", "path": "/home/dev/project/.env"}), denied),
        ("Grep", json!({"pattern": "a", "path": "/home/dev/.ssh"}), denied),
        ("Grep", json!({"pattern": "a", "glob": "**/*.pem"}), denied),
        ("Grep", json!({"pattern": "a", "glob": "*.{ts,tsx}"}), ""),
        ("Grep", json!({"pattern": "a", "glob": "*.{a,env}"}), denied),
        ("Grep", json!({"pattern": "a", "glob": "*.{pem,a}"}), denied),
        ("Grep", json!({"pattern": "a", "glob": "*.{a,key}"}), denied),
        ("Edit", only("file_path", "/home/dev/.npmrc"), denied),
        ("Write", only("file_path", "/home/dev/project/server.pem"), denied),
        ("Bash", only("command", "cargo build"), ""),
        ("Bash", only("command", "cat .env"), denied),
        ("Bash", only("command", "cp ~/.ssh/id_ed25519 /tmp"), denied),
        ("Bash", only("command", "tar c ~/.aws"), denied),
        ("Bash", only("command", "cat ~/.config/agent-authority/coder.key"), denied),
        ("Bash", only("command", "cat a.key | head"), denied),
        ("Bash", only("command", "cat \"certs/server.key\""), denied),
        ("Bash", only("command", "cat 'server.key'"), denied),
        ("Bash", only("command", "cat server.key|base64"), denied),
        ("Bash", only("command", "cat server.key;ls"), denied),
        ("Bash", only("command", "cat server.key&&ls"), denied),
        ("Bash", only("command", "cat server.key>x"), denied),
        ("Bash", only("command", "echo $(cat server.key)"), denied),
        ("Bash", only("command", "cat server.key\nls"), denied),
        ("Bash", only("command", "python3 -c 'print({}.keys())'"), ""),
        ("Bash", only("command", "printenv"), denied),
        ("Bash", only("command", "env | sort"), denied),
        ("Bash", only("command", "python3 -m venv .venv"), ""),
        ("Bash", nothing(), denied),
    ];
    Box::pin(expect(SECRETS, calls)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_mcp_servers_are_held() {
    let held = "Held for approval: x_code_mcp";
    let calls = [
        ("mcp__github__create_issue", only("title", "a"), held),
        ("Bash", only("command", "ls"), ""),
    ];
    Box::pin(expect(MCP, calls)).await;
}

/// Long texts make `like` expensive, and a decision that could take too long is a denial. A command is as long as
/// the guide says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_commands_and_files_are_decided() {
    let command = format!("cat > a <<'END'\n{}END", "a line\n".repeat(2923));
    assert_eq!(command.len(), 20 * 1024);
    let content = "a line\n".repeat(8000);
    let calls = [
        ("Bash", json!({"command": command}), ""),
        ("Write", json!({"file_path": "/home/dev/project/a", "content": content}), ""),
    ];
    Box::pin(expect(&[SHELL, EDITS, SECRETS, MCP].join("\n"), calls)).await;
}
