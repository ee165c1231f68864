//! The sessions that are open over one connection, and what a client can ask of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    self, CloseSessionRequest, CloseSessionResponse, DeleteSessionRequest, DeleteSessionResponse, ListSessionsRequest,
    ListSessionsResponse, LoadSessionRequest, LoadSessionResponse, McpServer, NewSessionRequest, NewSessionResponse,
    ResumeSessionRequest, ResumeSessionResponse, SessionInfo, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest,
};
use agent_client_protocol::{Client, Error};
use context::Ctx;
use session::{SessionId, SessionTitle, Sessions};
use session_store::{OpenError, RemoveError, Row, SessionStore};

use crate::errors::{failed, invalid, refused, unknown};
use crate::host::Host;
use crate::seat::{From, Seat};
use crate::settings;
use crate::wire::Flow;

/// How many sessions a page of the list has.
const PAGE: usize = 100;

/// The answer to whoever opened a session, and the session.
pub(crate) type Opened<T> = (T, Arc<Seat>);

pub(crate) struct Desk {
    pub(crate) ctx: Ctx,
    host: Arc<dyn Host>,
    flow: Arc<Flow>,
    seats: Mutex<HashMap<SessionId, Arc<Seat>>>,
}

impl Desk {
    pub(crate) fn new(ctx: &Ctx, host: Arc<dyn Host>, flow: Arc<Flow>) -> Arc<Self> {
        Arc::new(Self { ctx: ctx.clone(), host, flow, seats: Mutex::default() })
    }

    pub(crate) fn seat(&self, id: &schema::SessionId) -> Result<Arc<Seat>, Error> {
        let seat = id.0.parse().ok().and_then(|id: SessionId| self.seats().get(&id).cloned());
        seat.ok_or_else(|| unknown(id))
    }

    pub(crate) async fn new_session(
        &self,
        client: ConnectionTo<Client>,
        request: NewSessionRequest,
    ) -> Result<Opened<NewSessionResponse>, Error> {
        not_started(&request.mcp_servers);
        let root = self.root(&request.cwd, &request.additional_directories).await?;
        let cwd =
            root.to_str().ok_or_else(|| invalid("the working directory is not UTF-8, and a log could not name it"))?;
        let house = self.host.house(&root).await.map_err(failed)?;
        let opened = async {
            let sessions = house.app.get::<Sessions>().ok_or_else(|| failed("the app has no sessions"))?;
            let store = house.app.get::<dyn SessionStore>().ok_or_else(|| failed("the app keeps no sessions"))?;
            let session = sessions.create(cwd);
            self.host.begin(&house, &session).map_err(failed)?;
            store.create(&session).await.map_err(failed)?;
            // Another process may be asked to go on with it, whatever becomes of this one.
            session.flush().await.map_err(failed)?;
            Ok(session)
        };
        let session = match opened.await {
            Ok(session) => session,
            Err(error) => {
                let _ = house.app.close().await;
                return Err(error);
            }
        };
        let seat = self.take(house, session, From::Now, client).await?;
        let response = NewSessionResponse::new(seat.id().to_string());
        Ok((response.modes(seat.modes()).config_options(seat.options()), seat))
    }

    pub(crate) async fn load(
        &self,
        client: ConnectionTo<Client>,
        request: LoadSessionRequest,
    ) -> Result<Opened<LoadSessionResponse>, Error> {
        let LoadSessionRequest { session_id, cwd, additional_directories, mcp_servers, .. } = request;
        not_started(&mcp_servers);
        let seat = self.open(client, &session_id, &cwd, &additional_directories, From::Start).await?;
        seat.shown().await;
        Ok((LoadSessionResponse::new().modes(seat.modes()).config_options(seat.options()), seat))
    }

    pub(crate) async fn resume(
        &self,
        client: ConnectionTo<Client>,
        request: ResumeSessionRequest,
    ) -> Result<Opened<ResumeSessionResponse>, Error> {
        let ResumeSessionRequest { session_id, cwd, additional_directories, mcp_servers, .. } = request;
        not_started(&mcp_servers);
        let seat = self.open(client, &session_id, &cwd, &additional_directories, From::Now).await?;
        Ok((ResumeSessionResponse::new().modes(seat.modes()).config_options(seat.options()), seat))
    }

    async fn open(
        &self,
        client: ConnectionTo<Client>,
        id: &schema::SessionId,
        cwd: &Path,
        more: &[PathBuf],
        from: From,
    ) -> Result<Arc<Seat>, Error> {
        let known: SessionId = id.0.parse().map_err(|_| unknown(id))?;
        let root = self.root(cwd, more).await?;
        // A client that asks for it again wants it from the start.
        if let Ok(seat) = self.seat(id) {
            drop(seat.begin()?);
            self.leave(&seat).await?;
        }
        let house = self.host.house(&root).await.map_err(failed)?;
        let opened = async {
            let sessions = house.app.get::<Sessions>().ok_or_else(|| failed("the app has no sessions"))?;
            let store = house.app.get::<dyn SessionStore>().ok_or_else(|| failed("the app keeps no sessions"))?;
            let session = store.open(&sessions, known).await.map_err(|error| cannot_open(id, error))?.session;
            if let Some(lineage) = session.header().lineage() {
                let parent = lineage.parent();
                return Err(invalid(format!("session {known} is a child of {parent}: it is resumed by its parent")));
            }
            let kept = session.header().cwd().clone();
            match Path::new(&*kept) == root {
                true => Ok(session),
                false => Err(invalid(format!("session {known} works in {kept}, and its root cannot change"))),
            }
        };
        match opened.await {
            Ok(session) => self.take(house, session, from, client).await,
            Err(error) => {
                let _ = house.app.close().await;
                Err(error)
            }
        }
    }

    async fn take(
        &self,
        house: crate::House,
        session: session::Session,
        from: From,
        client: ConnectionTo<Client>,
    ) -> Result<Arc<Seat>, Error> {
        let seat = Seat::open(house, session, from, client, &self.flow).await.map_err(failed)?;
        let before = self.seats().insert(seat.id(), seat.clone());
        debug_assert!(before.is_none(), "its lease was free");
        Ok(seat)
    }

    pub(crate) async fn close(&self, request: CloseSessionRequest) -> Result<CloseSessionResponse, Error> {
        let seat = self.seat(&request.session_id)?;
        self.leave(&seat).await?;
        Ok(CloseSessionResponse::new())
    }

    pub(crate) async fn delete(&self, request: DeleteSessionRequest) -> Result<DeleteSessionResponse, Error> {
        let id = &request.session_id;
        let known: SessionId = id.0.parse().map_err(|_| unknown(id))?;
        if let Ok(seat) = self.seat(id) {
            self.leave(&seat).await?;
        }
        let (store, vocabulary) = self.host.store();
        let rows = store.list(&vocabulary).await.map_err(failed)?;
        if let Some(parent) = rows.iter().find(|row| row.id == known).and_then(parent) {
            return Err(invalid(format!("session {known} is a child of {parent}: it goes with its parent")));
        }
        // Without its parent nobody could prove what a child was allowed to. The last goes first: what stays if one of them
        // is being written is a tree.
        for gone in below(&rows, known).into_iter().rev().chain([known]) {
            match store.remove(gone).await {
                Ok(()) => {}
                Err(RemoveError::NotFound(_)) if gone == known => return Err(unknown(id)),
                Err(RemoveError::NotFound(_)) => {}
                Err(error) => return Err(refused(error)),
            }
        }
        Ok(DeleteSessionResponse::new())
    }

    pub(crate) async fn list(&self, request: ListSessionsRequest) -> Result<ListSessionsResponse, Error> {
        let (store, vocabulary) = self.host.store();
        let mut rows = store.list(&vocabulary).await.map_err(failed)?;
        // Ids begin with their time: the newest first.
        rows.reverse();
        let after: Option<SessionId> = match request.cursor {
            None => None,
            Some(cursor) => Some(cursor.parse().map_err(|_| invalid("the cursor is none of this list"))?),
        };
        let cwd = request.cwd.as_deref();
        let mut infos =
            rows.iter().filter(|row| after.is_none_or(|after| row.id < after)).filter_map(|row| info(row, cwd));
        let page: Vec<SessionInfo> = infos.by_ref().take(PAGE).collect();
        let more = infos.next().is_some();
        let next = page.last().filter(|_| more).map(|last| last.session_id.to_string());
        Ok(ListSessionsResponse::new(page).next_cursor(next))
    }

    pub(crate) fn set_mode(&self, request: &SetSessionModeRequest) -> Result<Arc<Seat>, Error> {
        let seat = self.seat(&request.session_id)?;
        seat.set_mode(&request.mode_id.0)?;
        Ok(seat)
    }

    pub(crate) fn set_option(
        &self,
        request: &SetSessionConfigOptionRequest,
    ) -> Result<SetSessionConfigOptionResponse, Error> {
        let seat = self.seat(&request.session_id)?;
        if &*request.config_id.0 != settings::MODEL {
            return Err(invalid(format!("there is one option, `{}`", settings::MODEL)));
        }
        let model = request.value.as_value_id().ok_or_else(|| invalid("a model is named by a text"))?;
        seat.set_model(&model.0)?;
        Ok(SetSessionConfigOptionResponse::new(seat.options()))
    }

    /// Closes everything: the connection is gone.
    pub(crate) async fn close_all(&self) {
        let seats: Vec<_> = self.seats().drain().map(|(_, seat)| seat).collect();
        let closing = seats.iter().map(|seat| async {
            if let Err(error) = seat.close().await {
                tracing::warn!(session = %seat.id(), %error, "a session was not closed cleanly");
            }
        });
        futures_util::future::join_all(closing).await;
    }

    /// The session can be opened anew when this returns.
    async fn leave(&self, seat: &Arc<Seat>) -> Result<(), Error> {
        let left = self.seats().remove(&seat.id());
        match left {
            Some(seat) => seat.close().await.map_err(failed),
            None => Err(refused("the session is being closed")),
        }
    }

    /// The workspace root, canonicalised by the file system before anything looks at its name.
    async fn root(&self, cwd: &Path, more: &[PathBuf]) -> Result<PathBuf, Error> {
        if !more.is_empty() {
            return Err(invalid("a session has one root, and no additional directories"));
        }
        if cwd.as_os_str().is_empty() {
            return Err(invalid("the working directory has no name: it is to be an absolute path"));
        }
        // The protocol has it absolute, but a client is known that sends `.`, and starts its agent there.
        let cwd = cwd.to_owned();
        let find = move || {
            let root = cwd.canonicalize().map_err(|error| format!("{}: {error}", cwd.display()))?;
            if root.is_dir() { Ok(root) } else { Err(format!("{} is not a directory", cwd.display())) }
        };
        let found = self.ctx.spawn_blocking("root", find).map_err(failed)?.await;
        found.map_err(failed)?.map_err(invalid)
    }

    fn seats(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Seat>>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Clients send along what they are configured with, whether or not an agent has a use for it.
fn not_started(servers: &[McpServer]) {
    if !servers.is_empty() {
        tracing::error!(count = servers.len(), "MCP servers that the client named are not started");
    }
}

fn cannot_open(id: &schema::SessionId, error: OpenError) -> Error {
    match error {
        OpenError::NotFound(_) => unknown(id),
        OpenError::Busy(_) => refused(error),
        error => failed(error),
    }
}

fn parent(row: &Row) -> Option<SessionId> {
    row.found.as_ref().ok().and_then(|summary| summary.header.lineage()).map(|lineage| lineage.parent())
}

/// The sessions below one, parents before their children.
fn below(rows: &[Row], top: SessionId) -> Vec<SessionId> {
    let mut children: HashMap<SessionId, Vec<SessionId>> = HashMap::new();
    for row in rows {
        if let Some(parent) = parent(row) {
            children.entry(parent).or_default().push(row.id);
        }
    }
    let (mut found, mut at) = (children.remove(&top).unwrap_or_default(), 0);
    while let Some(next) = found.get(at) {
        // Each is taken out once, so that logs which name each other end too.
        found.extend(children.remove(next).unwrap_or_default());
        at += 1;
    }
    found
}

/// A top-level session that can be read, in this directory if one is named.
fn info(row: &Row, cwd: Option<&Path>) -> Option<SessionInfo> {
    let summary = row.found.as_ref().ok().filter(|summary| summary.header.lineage().is_none())?;
    let own = Path::new(&**summary.header.cwd());
    if cwd.is_some_and(|cwd| cwd != own) {
        return None;
    }
    let title = summary.first.iter().find_map(|event| event.get::<SessionTitle>()).map(|title| title.title.to_string());
    Some(SessionInfo::new(row.id.to_string(), own).title(title).updated_at(crate::time::iso(summary.modified)))
}
