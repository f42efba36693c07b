package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite what clients get in the conversations, and the recordings")

// eras are the ways in which a client talks to the server: with a handshake, with version
// 2026-07-28, and with its tasks. In the era raw, which a conversation names, its script is all that the client says: there the
// comment has the source of the expectation.
var eras = []string{"handshake", "modern", "tasks"}

// TestGolden plays the conversations in testdata/golden in each era with the native engine.
// TestRealGolden plays them with the real Codex, by day each in one era. Each is a txtar archive:
//
//	comment        what it shows
//	args           more arguments for the program
//	config.toml    lines before those of the scripted model
//	model.json     the model's turns, see goldenTurn
//	entry          how the client gets to the server, see goldenEntries, if it does not start it
//	capabilities   those of the client, if not elicitation, and extensions by era
//	protocol       the version that the client asks for in the handshake, if not 2025-06-18
//	script         what the client does, see golden.play
//	native/ERA     what the client gets; -update rewrites it
//	codex/ERA      the same with the real Codex
//
// The first line names the engines before its colon. A section "eras" names the eras, if not all.
func TestGolden(t *testing.T) {
	t.Parallel()
	playGolden(t, "native")
}

func playGolden(t *testing.T, engine string, args ...string) {
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for n, file := range files {
		a := must.Get(txtar.ParseFile(file))(t)
		if engines, _, _ := strings.Cut(string(a.Comment), ":"); !strings.Contains(engines, engine) {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := map[string]string{}
			of := eras
			if some := strings.Fields(servertest.Section(a, "eras")); len(some) > 0 {
				of = some
			}
			if engine == "codex" && !*update && !nightly.Tests() {
				of = of[n%len(of):][:1]
			}
			entry := strings.TrimSpace(servertest.Section(a, "entry"))
			if entry != "" && goldenEntries[entry] == nil {
				t.Skipf("no entry %s on this system", entry)
			}
			for _, era := range of {
				t.Run(era, func(t *testing.T) {
					g := newGolden(t, era, engine, a, args)
					g.play(servertest.Section(a, "script"))
					got[engine+"/"+era] = g.text()
				})
			}
			if *update && !t.Failed() {
				for _, part := range slices.Sorted(maps.Keys(got)) {
					servertest.SetSection(a, part, got[part])
				}
				must.OK(t, os.WriteFile(file, txtar.Format(a), 0o644))
				return
			}
			for part, text := range got {
				must.Equal(t, part, servertest.Section(a, part), text)
			}
		})
	}
}

// goldenEntries start a client of a server that the client does not start itself, by section "entry".
var goldenEntries = map[string]launcher{}

// golden are clients with the same folders. Each client starts one server after the other.
type golden struct {
	t            *testing.T
	era, engine  string
	args         []string
	capabilities map[string]any
	protocol     string
	launch       launcher
	f            folders
	model        *providertest.Server
	waits        map[string]chan struct{} // of the model's turns
	*goldenClient
	clients    []*goldenClient
	page       *servertest.Visitor
	events     *servertest.PageEvents // of it
	onPage     int                    // the question that the page has shown
	out        strings.Builder
	ids, polls int
	calls      map[string]*goldenCall
	thread     string
	killed     bool
	recorded   bool // write the record of approvals
}

// goldenClient is one client.
type goldenClient struct {
	name   string
	p      *process
	record []map[string]any
}

// goldenCall is a call of a tool.
type goldenCall struct {
	tool      string
	arguments json.RawMessage
	id        int    // of the last request
	task      string // its id, or ""
	asked     map[string]any
}

// goldenTurn is a turn of the model: a command, a patch or a text.
type goldenTurn struct {
	Run, Patch, Say string
	Match           string   // the turn is for the request with this text
	Text            []string // in these pieces
	ToolCalls       []struct {
		ID, Name  string
		Arguments map[string]any
	} `json:"tool_calls"`
	Status int // of an answer that is an error
	Body   string
	Engine string // skips the turn with the other engine
	Hang   bool   // never ends
	Wait   string // waits for the step "release" with this name
	Ask    string // calls this tool of an MCP server, without arguments
}

func (m goldenTurn) scripted(engine string, n int) providertest.Turn {
	call := map[string]any{"cmd": m.Run}
	switch {
	case m.Ask != "":
		return providertest.Call(providertest.Tool(fmt.Sprintf("call-%d", n), m.Ask, map[string]any{}))
	case m.Patch != "":
		call["cmd"] = "apply_patch <<'EOF'\n" + m.Patch + "EOF\n"
	case m.Run == "":
		turn := providertest.Say(m.Say)
		if m.Say == "" {
			turn = providertest.Turn{Match: m.Match, Text: m.Text, Status: m.Status, Body: m.Body}
		}
		for _, c := range m.ToolCalls {
			turn.ToolCalls = append(turn.ToolCalls, providertest.Tool(c.ID, c.Name, c.Arguments))
		}
		if m.Hang {
			turn.Wait = make(chan struct{}) // until the provider is closed
		}
		return turn
	}
	name := "exec_command"
	if engine == "native" {
		name, call = "shell", map[string]any{"command": []string{"bash", "-c", call["cmd"].(string)}}
		if m.Patch != "" {
			name, call = "apply_patch", map[string]any{"input": m.Patch}
		}
	}
	return providertest.Call(providertest.Tool(fmt.Sprintf("call-%d", n), name, call))
}

func newGolden(t *testing.T, era, engine string, a *txtar.Archive, args []string) *golden {
	g := &golden{t: t, era: era, engine: engine, f: newFolders(t), model: providertest.New(), calls: map[string]*goldenCall{},
		waits: map[string]chan struct{}{}, launch: start, capabilities: map[string]any{"elicitation": map[string]any{}}, protocol: "2025-06-18"}
	if entry := strings.TrimSpace(servertest.Section(a, "entry")); entry != "" {
		g.launch = goldenEntries[entry]
	}
	if text := servertest.Section(a, "capabilities"); text != "" {
		g.capabilities = pattern(t, text)
	}
	if text := strings.TrimSpace(servertest.Section(a, "protocol")); text != "" {
		g.protocol = text
	}
	t.Cleanup(g.model.Close)
	var turns []goldenTurn
	if text := servertest.Section(a, "model.json"); text != "" {
		if err := json.Unmarshal([]byte(text), &turns); err != nil {
			t.Fatalf("model.json: %v", err)
		}
	}
	for n, m := range turns {
		if m.Engine == "" || m.Engine == engine {
			turn := m.scripted(engine, n)
			if m.Wait != "" {
				g.waits[m.Wait] = make(chan struct{})
				turn.Wait = g.waits[m.Wait]
			}
			g.model.Add(turn)
		}
	}
	wire := "wire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n"
	writeConfig(t, g.f.home, servertest.Section(a, "config.toml")+fmt.Sprintf(strings.Replace(configOf, "sandbox_mode = \"danger-full-access\"\n", "", 1), g.model.BaseURL())+wire)
	for _, file := range a.Files {
		if name, ok := strings.CutPrefix(file.Name, "work/"); ok {
			must.OK(t, os.WriteFile(filepath.Join(g.f.cwd, name), file.Data, 0o644))
		}
	}
	g.args = append([]string{"--engine", engine, "-c", "calls.grace=0s"}, args...)
	if era == "raw" {
		writeConfig(t, g.f.home, strings.ReplaceAll(usualConfig, "$BASE_URL", g.model.BaseURL()))
		g.args = []string{"--engine", engine}
	}
	for word := range strings.FieldsSeq(servertest.Section(a, "args")) {
		g.args = append(g.args, strings.ReplaceAll(word, "$CWD", g.f.cwd))
	}
	g.use("")
	return g
}

// use makes a client the one that the next steps are about, and starts its server if it is new.
func (g *golden) use(name string) {
	if i := slices.IndexFunc(g.clients, func(c *goldenClient) bool { return c.name == name }); i >= 0 {
		g.goldenClient = g.clients[i]
		return
	}
	g.goldenClient = &goldenClient{name: name}
	g.clients = append(g.clients, g.goldenClient)
	g.start()
}

func (g *golden) start() {
	g.p = g.launch(g.t, g.f, g.args...)
	switch g.era {
	case "raw":
		return
	case "handshake":
		g.send(0, "initialize", map[string]any{"protocolVersion": g.protocol, "capabilities": g.capabilities, "clientInfo": goldenInfo})
		g.p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	default:
		g.send(0, "server/discover", map[string]any{})
	}
	g.keep(g.answer(0))
}

var goldenInfo = map[string]any{"name": "test", "version": "1"}

// send sends a request, with what the era adds.
func (g *golden) send(id int, method string, params map[string]any) {
	g.t.Helper()
	if g.era != "handshake" {
		extensions := map[string]any{"io.github.codexmcp/events": map[string]any{}}
		if g.era == "tasks" { // whose calls end before most events
			extensions = map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}
		}
		capabilities := map[string]any{"extensions": extensions}
		maps.Copy(capabilities, g.capabilities)
		params["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
			"io.modelcontextprotocol/clientInfo":         goldenInfo,
			"io.modelcontextprotocol/clientCapabilities": capabilities,
		}
	}
	g.p.send(line(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

// answer waits for the answer to a request.
func (g *golden) answer(id int) map[string]any {
	g.t.Helper()
	return g.noted(g.p.expect(map[string]any{"id": float64(id), "method": nil}))
}

// threads finds the thread that a message is about.
var threads = regexp.MustCompile(`"(?:threadId|taskId)":"([0-9a-f-]{36})`)

// noted remembers the thread of a message.
func (g *golden) noted(m map[string]any) map[string]any {
	if found := threads.FindStringSubmatch(line(m)); found != nil {
		g.thread = found[1]
	}
	return m
}

// keep records an answer. Other answers, of polls, are not part of the text.
func (g *golden) keep(m map[string]any) { g.record = append(g.record, m) }

// play runs a script with one step on each line:
//
//	call NAME TOOL ARGUMENTS      call a tool
//	question NAME                 wait until the call has a question
//	answer NAME RESULT            answer it, such as {"action":"accept"}
//	result NAME                   wait for the result of the call
//	over NAME                     wait for the result of the call, of which the clock decides what it says
//	ended                         wait until the turn has ended, by calls of codex-wait, and keep the last one's result
//	stray NAME RESULT             answer what nobody asked, while the call has a question
//	again NAME RESULT             answer the question once more
//	error NAME MESSAGE            answer it with an error, with a handshake
//	person                        wait as long as a person needs at least before an answer
//	send MESSAGE                  send it as it is
//	receive PATTERN               wait for a message that contains it
//	client NAME                   the next steps are another client's, which starts with the first of them
//	page                          open the approvals page
//	page told                     wait until the client has been told the page's link
//	page open                     wait until a question is open there
//	page decided                  wait until a question is decided there
//	page answer RESULT            answer the open one there
//	record                        write down, at the end, what approvals.log has
//	requests N                    wait until the model has received N requests
//	release NAME                  let the model's turn that waits for it go on, when the call with this name has its task
//	model N                       write down the message and the tool's output at the end of the model's request N
//	file NAME                     write down what a file of the work folder has
//	git ARGUMENTS                 run git in the work folder
//	kill                          kill the server, and start the next one
//
// ${thread} is the thread of the last question or answer.
func (g *golden) play(script string) {
	t := g.t
	for step := range strings.Lines(script) {
		step = strings.NewReplacer("$CWD", g.f.cwd, "${thread}", g.thread).Replace(strings.TrimSpace(step))
		word, rest, _ := strings.Cut(step, " ")
		name, rest, _ := strings.Cut(rest, " ")
		c := g.calls[name]
		switch word {
		case "", "#":
		case "call":
			tool, arguments, _ := strings.Cut(rest, " ")
			g.calls[name] = &goldenCall{tool: tool, arguments: json.RawMessage(arguments)}
			g.call(g.calls[name], nil)
		case "question":
			g.question(c)
		case "answer":
			g.reply(c, pattern(t, rest))
		case "result":
			m := g.next(c)
			if contains(m, map[string]any{"result": map[string]any{"inputRequests": "*"}}) {
				t.Fatalf("%s: a question: %s", step, line(m))
			}
			g.keep(m)
		case "over":
			g.next(c)
		case "ended":
			g.ended()
		case "stray":
			g.stray(c, pattern(t, rest))
		case "again":
			g.again(c, pattern(t, rest))
		case "error":
			g.p.send(line(map[string]any{"jsonrpc": "2.0", "id": c.asked["id"], "error": map[string]any{"code": -32000, "message": rest}}))
		case "person":
			<-time.After(approve.Instant + 100*time.Millisecond)
		case "send":
			_, message, _ := strings.Cut(step, " ")
			g.p.send(message)
		case "receive":
			_, message, _ := strings.Cut(step, " ")
			m := g.noted(g.p.expect(pattern(t, message)))
			if batch, ok := m["batch"].([]any); ok { // whose order is not promised
				slices.SortFunc(batch, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			}
			if m["method"] == nil {
				g.keep(m)
			}
		case "client":
			g.use(name)
		case "page":
			g.visit(name, rest)
		case "record":
			g.recorded = true
		case "release":
			if c != nil && g.era == "tasks" {
				if m := g.begun(c); m != nil {
					t.Fatalf("%s: no task: %s", step, line(m))
				}
			}
			close(g.waits[name])
		case "model", "requests":
			var n int
			fmt.Sscan(name, &n)
			awaitRequests(t, g.model, n)
			if word == "model" {
				r := g.model.Requests()[n-1]
				fmt.Fprintf(&g.out, "# model %d\n%s\n", n, line(map[string]any{"message": r.LastUserText(), "output": r.LastToolOutput()}))
			}
		case "file":
			text, err := os.ReadFile(filepath.Join(g.f.cwd, name))
			if err != nil {
				text = []byte("does not exist\n")
			}
			fmt.Fprintf(&g.out, "# file %s\n%s", name, text)
		case "git":
			servertest.Git(t, g.f.cwd, append([]string{name}, strings.Fields(rest)...)...)
		case "kill":
			g.killed = true
			g.p.cmd.Process.Kill()
			g.p.wait()
			g.flush()
			g.start()
		default:
			t.Fatalf("unknown step %q", step)
		}
	}
	for _, g.goldenClient = range g.clients {
		g.p.stdin.Close()
		must.Equal(t, "exit status", 0, g.p.wait())
		g.flush()
	}
	if g.recorded {
		g.writeRecord()
	}
}

// visit opens the approvals page, waits there, and answers there.
func (g *golden) visit(what, answer string) {
	switch what {
	case "":
		var link string
		until(g.t, "no link was printed", func() bool { // standard error has a reader of its own
			link = goldenLink.FindString(g.p.errors())
			return link != ""
		})
		g.page = servertest.Visit(g.t, link)
		g.events = g.page.Events()
	case "told":
		methods := map[string][]string{"handshake": {"codex/event", "notifications/message"}, "modern": {"codex/event"}}
		for _, method := range methods[g.era] {
			g.p.await("a link", func(m map[string]any) bool { return m["method"] == method && goldenLink.MatchString(line(m)) })
		}
	case "answer":
		g.page.Answer(g.onPage, answer)
	default:
		q := g.events.Question(what)
		g.onPage = q.ID
		fmt.Fprintf(&g.out, "# page %s\n%s\n", what, line(map[string]any{"command": q.Question.Command, "decision": q.Question.Decision, "by": q.Question.By}))
	}
}

var goldenLink = regexp.MustCompile(`http://127\.0\.0\.1:\d+/#[A-Za-z0-9_-]+`)

// writeRecord writes the record of approvals.
func (g *golden) writeRecord() {
	text := must.Get(os.ReadFile(filepath.Join(g.f.home, "codex-mcp", "approvals.log")))(g.t)
	n := newNormaliser(g.f, g.model.BaseURL())
	g.out.WriteString("# record\n")
	for entry := range strings.Lines(string(text)) {
		e := pattern(g.t, entry)
		delete(e, "waitedMs")
		delete(e, "tookMs")                                                             // which are left out if they are 0
		if how, _ := e["automatic"].(string); !strings.Contains(how, "with an error") { // the client was fast enough or not
			delete(e, "automatic")
		}
		g.out.WriteString(line(n.value(e, "").(map[string]any)) + "\n")
	}
}

// flush writes what the client got from a server that has ended.
func (g *golden) flush() {
	if g.name != "" {
		fmt.Fprintf(&g.out, "# client %s\n", g.name)
	}
	var said []map[string]any
	for _, m := range g.p.messages() {
		if m["method"] != nil || g.era == "raw" {
			said = append(said, m)
		}
	}
	if g.era != "raw" {
		said = append(said, g.record...)
	}
	g.out.WriteString(lanes(said, g.f, g.model.BaseURL()))
	g.record = nil
}

// request sends a request and waits for its answer.
func (g *golden) request(method string, params map[string]any) map[string]any {
	g.polls++
	g.send(polled+g.polls, method, params)
	return g.answer(polled + g.polls)
}

// polled is where the ids of polls begin, of which there may be any number.
const polled = 1_000_000

// call calls the tool, again if answers are given.
func (g *golden) call(c *goldenCall, more map[string]any) {
	g.ids++
	c.id = g.ids
	params := map[string]any{"name": c.tool, "arguments": c.arguments}
	maps.Copy(params, more)
	g.send(c.id, "tools/call", params)
}

// next waits for the call's result or question. A task's result has the answer to a poll.
func (g *golden) next(c *goldenCall) map[string]any {
	if c.task == "" {
		if m := g.begun(c); m != nil {
			return m
		}
	}
	return g.poll(c, "working")
}

// begun waits for the task of a call, or returns another answer.
func (g *golden) begun(c *goldenCall) map[string]any {
	m := g.answer(c.id)
	result, _ := m["result"].(map[string]any)
	if c.task, _ = result["taskId"].(string); c.task == "" {
		return m
	}
	result["status"], result["statusMessage"] = "working", "<EARLY>" // the turn may already have said or asked something
	g.keep(m)
	return nil
}

// ended calls codex-wait until it has the result of a turn that has ended.
func (g *golden) ended() {
	for deadline := time.Now().Add(limit); ; {
		arguments := map[string]any{"threadIds": []string{g.thread}}
		m := g.request("tools/call", map[string]any{"name": "codex-wait", "arguments": arguments})
		if !strings.Contains(line(m), `"status":"running"`) {
			g.keep(m)
			return
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("the turn does not end: %s", line(m))
		}
	}
}

// poll gets the task until its status is not one of these.
func (g *golden) poll(c *goldenCall, not ...string) map[string]any {
	for deadline := time.Now().Add(limit); ; <-time.After(5 * time.Millisecond) {
		m := g.request("tasks/get", map[string]any{"taskId": c.task})
		result, _ := m["result"].(map[string]any)
		if status, _ := result["status"].(string); !slices.Contains(not, status) {
			return m
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("the task remains %s", line(m))
		}
	}
}

func (g *golden) question(c *goldenCall) {
	if g.era == "handshake" {
		c.asked = g.noted(g.p.expect(map[string]any{"method": "elicitation/create"}))
		return
	}
	m := g.next(c)
	g.keep(m)
	if c.asked, _ = m["result"].(map[string]any); c.asked["inputRequests"] == nil {
		g.t.Fatalf("no question: %s", line(m))
	}
}

// reply answers the question of a call.
func (g *golden) reply(c *goldenCall, result map[string]any) {
	keys := []string{}
	if asked, ok := c.asked["inputRequests"].(map[string]any); ok {
		keys = slices.Collect(maps.Keys(asked))
	}
	g.respond(c, result, c.asked["id"], keys...)
}

// respond answers a request of the server, or questions with these keys.
func (g *golden) respond(c *goldenCall, result map[string]any, id any, keys ...string) {
	answers := map[string]any{}
	for _, key := range keys {
		answers[key] = result
	}
	switch {
	case g.era == "handshake":
		g.p.send(line(map[string]any{"jsonrpc": "2.0", "id": id, "result": result}))
	case c.task != "":
		g.keep(g.request("tasks/update", map[string]any{"taskId": c.task, "inputResponses": answers}))
	default:
		g.call(c, map[string]any{"inputResponses": answers, "requestState": c.asked["requestState"]})
	}
}

// stray answers a question that the call does not have. A call of 2026-07-28 has its question again then.
func (g *golden) stray(c *goldenCall, result map[string]any) {
	if g.respond(c, result, 999, "q999"); g.era != "handshake" && c.task == "" {
		g.question(c)
	}
}

// again answers a question that has an answer, and keeps what the server says to that.
func (g *golden) again(c *goldenCall, result map[string]any) {
	other := *c
	if g.reply(&other, result); g.era != "handshake" && c.task == "" {
		g.keep(g.answer(other.id))
	}
}

var goldenTimes = []struct {
	old *regexp.Regexp
	new string
}{
	{regexp.MustCompile(`"(requestState)":"[^"]*"`), `"$1":"<STATE>"`},
	{regexp.MustCompile(`(<UUID-\d+>)\.[A-Za-z0-9_-]{20,}`), `$1.<TASK>`},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), `<TIME>`},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d`), `<TIME>`},
	{regexp.MustCompile(`process \d+ on [^ ,"]+`), `process <PID> on <HOST>`},
	{regexp.MustCompile(`(worktrees/|codex/)[0-9a-f]{8}\b`), `$1<WORKTREE>`},
	{regexp.MustCompile(`"(base|commit)":"[0-9a-f]{40}"`), `"$1":"<COMMIT>"`},
	{regexp.MustCompile(`"ttlMs":864\d{5}\b`), `"ttlMs":"<A DAY AND MORE>"`},
	{regexp.MustCompile(`http://127\.0\.0\.1:\d+/#[A-Za-z0-9_-]+`), `<PAGE>`},
	{regexp.MustCompile(` · \d+[hms]\d*[ms]?\d*s?( · no output seen)?`), ``},
	{regexp.MustCompile(`(with an error) \S+ \w+ (after the question)`), `$1 <TIME> $2`},
	{regexp.MustCompile(`"[A-Z2-7]{12}-(\d+)"`), `"<DECISION-$1>"`},
	{regexp.MustCompile(`"serverId":"[A-Z2-7]{12}"`), `"serverId":"<SERVER>"`},
	{regexp.MustCompile(`run\d+/work/`), ``}, // Codex takes a .git in /tmp, which its sandbox leaves, for the repository
	{regexp.MustCompile(`"id":1\d{6}\b`), `"id":"<POLL>"`},
}

// text is what the client got, without what differs from run to run.
func (g *golden) text() string {
	text := g.out.String()
	for _, r := range goldenTimes {
		text = r.old.ReplaceAllString(text, r.new)
	}
	if g.killed && g.engine == "codex" { // which may have counted the tokens of the last answer or not
		text = totals.ReplaceAllString(text, `$1"<SUM>"`)
	}
	if g.engine == "codex" { // which may have counted them before the end or not
		text = abortedUsage.ReplaceAllString(text, "$1")
	}
	return byMember(text)
}

// byMember writes each member of the answers on a line of its own, so that a new one is a line of the difference.
func byMember(text string) string {
	var all strings.Builder
	answer := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "# ") {
			answer = strings.HasPrefix(line, "# answer ")
		}
		var whole bytes.Buffer
		if answer && json.Indent(&whole, []byte(line), "", "\t") == nil {
			line = whole.String()
		}
		all.WriteString(line)
	}
	return all.String()
}

// abortedUsage are the tokens in the result of a turn that was aborted.
var abortedUsage = regexp.MustCompile(`(\\*"status\\*":\\*"aborted\\*",\\*"threadId\\*":[^,]*),\\*"usage\\*":{\\*"thread\\*":{[^{}]*},\\*"turn\\*":{[^{}]*}}`)

// totals are the tokens of a whole conversation.
var totals = regexp.MustCompile(`("(?:total_token_usage|thread)":){[^}]*}`)

func pattern(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("pattern %s: %v", text, err)
	}
	return m
}

func awaitRequests(t *testing.T, model *providertest.Server, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	must.OK(t, model.Await(ctx, n))
}
