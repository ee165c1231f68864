//! What a child sees of the harness's environment.

use std::ffi::OsString;

use subprocess::Environment;

use crate::world::World;

const NAMES: [&str; 40] = [
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "DEEPSEEK_API_KEY",
    "GEMINI_API_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "GITLAB_TOKEN",
    "NPM_TOKEN",
    "CARGO_REGISTRY_TOKEN",
    "DATABASE_URL",
    "PGPASSWORD",
    "MYSQL_PWD",
    "REDIS_URL",
    "SSH_AUTH_SOCK",
    "GPG_AGENT_INFO",
    "KUBECONFIG",
    "DOCKER_AUTH_CONFIG",
    "VAULT_TOKEN",
    "SLACK_TOKEN",
    "STRIPE_SECRET_KEY",
    "TWILIO_AUTH_TOKEN",
    "SENDGRID_API_KEY",
    "HF_TOKEN",
    "AZURE_CLIENT_SECRET",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "CLOUDFLARE_API_TOKEN",
    "HEROKU_API_KEY",
    "XDG_SECRET_TOKEN",
    "LC_SECRET",
    "XDG_SESSION_COOKIE",
    "HTTP_PROXY_PASSWORD",
    "NETRC",
    "BEARER",
    "JWT",
    "TETHER_HOME",
    "LD_PRELOAD",
    "NODE_OPTIONS",
];

// D-65
#[tokio::test(flavor = "multi_thread")]
async fn no_secret_reaches_a_child_but_what_the_operator_names() {
    let secret = |name: &str| (OsString::from(name), OsString::from(format!("s3cret-{name}")));
    let harness = NAMES.map(secret).into_iter().chain([
        ("PATH".into(), std::env::var_os("PATH").unwrap()),
        ("LC_ALL".into(), "C.UTF-8".into()),
        ("HTTPS_PROXY".into(), "http://ada:s3cret-proxy@proxy:3128".into()),
    ]);
    let world = World::with("", |mut config, _| {
        config.settings.base = Environment::allowed(harness);
        config.settings.env.push(("CODEX_API_KEY".into(), "named".into()));
        config
    })
    .await;
    let seen = world.does("variables").await.text();
    assert!(!seen.contains("s3cret"), "{seen}");
    for part in ["LC_ALL=C.UTF-8\n", "HTTPS_PROXY=http://proxy:3128\n", "CODEX_API_KEY=named\n", "PATH="] {
        assert!(seen.contains(part), "{part} is not in {seen}");
    }
    world.close().await;
}
