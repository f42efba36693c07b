package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure/enclosuretest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/natstest"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats-server/v2/server"
)

// cluster is a service: three NATS servers, three nodes and two fronts.
type cluster struct {
	t      *testing.T
	top    string
	nats   []*server.Server
	nodes  map[string]*process // by name
	fronts []*httpServer
	tokens map[string]string
}

// startNATS starts the NATS servers, which are in the process of the test.
func startNATS(t *testing.T) []*server.Server {
	t.Helper()
	all := natstest.Routed(t)
	until(t, "JetStream has no leader", func() bool {
		return slices.ContainsFunc(all, func(s *server.Server) bool {
			return s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == len(all)
		})
	})
	return all
}

// startCluster starts a service for ann and bob. Each node has homes of its own for them, and their
// folders are the same on all.
func startCluster(t *testing.T, model *providertest.Server, args ...string) *cluster {
	t.Helper()
	enclosuretest.Need(t)
	c := &cluster{t: t, top: boxtest.Outside(t), nodes: map[string]*process{}, tokens: map[string]string{}}
	c.nats = startNATS(t)
	link := linked(t)
	var users strings.Builder
	for _, name := range []string{"ann", "bob"} {
		token, hash := access.NewToken()
		c.tokens[name] = token
		if err := os.Mkdir(filepath.Join(c.top, name), 0o700); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&users, "\n[http.principals.%s]\ntokens = [%q]\nfolders = [%q]\n", name, hash, c.top+"/"+name)
	}
	for name, service := range map[string]string{
		"a": "roles = ['node']\n[node]\nname = 'a'\n", "b": "roles = ['node']\n[node]\nname = 'b'\n", "c": "roles = ['node']\n[node]\nname = 'c'\n",
		"front1": "roles = ['front']\n", "front2": "roles = ['front']\n",
	} {
		f := folders{home: filepath.Join(c.top, "server-"+name), cwd: c.top, user: c.top + "/user"}
		if err := os.MkdirAll(f.user, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(f.home, 0o700); err != nil {
			t.Fatal(err)
		}
		var servers []string
		for _, s := range c.nats {
			servers = append(servers, s.ClientURL())
		}
		text := fmt.Sprintf("link = %s\n[nats]\nurl = %q\nreplicas = 3\nlease = '3s'\n%s", link, strings.Join(servers, ","), service)
		for file, text := range map[string]string{"codex-mcp.toml": users.String(), "codex-mcp-gateway.toml": text} {
			if err := os.WriteFile(filepath.Join(f.home, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := c.launch(f, model, args)
		if strings.HasPrefix(name, "front") {
			c.fronts = append(c.fronts, s)
		} else {
			c.nodes[name] = s.process
		}
	}
	for _, s := range append(slices.Clone(c.fronts), &httpServer{process: c.nodes["a"]}, &httpServer{process: c.nodes["b"]}, &httpServer{process: c.nodes["c"]}) {
		until(t, "a process does not start", func() bool {
			select {
			case <-s.exited:
				t.Fatalf("a process does not start: %s", s.errors())
			default:
			}
			_, rest, serves := strings.Cut(s.errors(), "serving MCP at ")
			s.url, _, _ = strings.Cut(rest, mcpPath+";")
			return serves || strings.Contains(s.errors(), "running workers")
		})
	}
	return c
}

// launch starts the program with a configuration.
func (c *cluster) launch(f folders, model *providertest.Server, args []string) *httpServer {
	c.t.Helper()
	dir, err := programs()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.home, "config.toml"), fmt.Appendf(nil, configOf, model.BaseURL()), 0o600); err != nil {
		c.t.Fatal(err)
	}
	args = append([]string{"--engine", "native", "--listen", "127.0.0.1:0"}, args...)
	return &httpServer{process: launch(c.t, f, exec.Command(filepath.Join(dir, program), args...))}
}

// at returns a front with the token of a user.
func (c *cluster) at(front int, user string) *httpServer {
	s := *c.fronts[front%len(c.fronts)]
	s.t, s.token = c.t, c.tokens[user]
	return &s
}

// send sends a message of a session, and returns the answer, whose body the caller closes.
func (s *httpServer) send(method, session, last, message string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+mcpPath, strings.NewReader(message))
	if err != nil {
		s.t.Fatal(err)
	}
	for header, value := range map[string]string{
		"Authorization": "Bearer " + s.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session, "Last-Event-ID": last,
		"Mcp-Protocol-Version": "2025-11-25",
	} {
		if value != "" && !(header == "Accept" && method == http.MethodGet) {
			r.Header.Set(header, value)
		}
	}
	if method == http.MethodGet {
		r.Header.Set("Accept", "text/event-stream")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer
}

// status returns the state of the service, as the operator sees it.
func (c *cluster) status() (all status) {
	c.t.Helper()
	dir, err := programs()
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, program), "status", "--json")
	cmd.Env = []string{"CODEX_HOME=" + filepath.Join(c.top, "server-front1"), "HOME=" + c.top}
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil {
		c.t.Fatalf("status: %v\n%s", err, out)
	}
	return all
}

// nodeOf returns the name of the node with the lease of a user, or "".
func (c *cluster) nodeOf(user string) string {
	for _, l := range c.status().Leases {
		if l.User == user {
			return l.Node
		}
	}
	return ""
}

// done reports whether a call of the model has a result. A call that was open when its server ended has none.
func done(r providertest.Request) bool {
	return slices.ContainsFunc(r.ToolOutputs(), func(o providertest.ToolOutput) bool { return !strings.HasPrefix(o.Output, "aborted") })
}

// TestEndToEndCluster uses a service by two fronts in turns, and then kills its parts.
func TestEndToEndCluster(t *testing.T) {
	held := make(chan struct{})
	model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		prompt := r.LastUserText()
		if file, ok := strings.CutPrefix(prompt, "touch "); ok && !done(r) {
			return providertest.Call(providertest.Shell("c1", "touch", file))
		}
		if file, ok := strings.CutPrefix(prompt, "append to "); ok && !done(r) {
			return providertest.Call(providertest.Shell("c1", "sh", "-c", "echo begun >>"+file+"; until [ -e "+file+".go ]; do sleep 0.05; done; echo ended >>"+file))
		}
		turn := providertest.Say("the answer to " + prompt)
		if strings.HasPrefix(prompt, "wait") {
			turn.Wait = held
		}
		return turn
	}})
	t.Cleanup(model.Close)
	// A drain that waits for a question would last for an hour.
	c := startCluster(t, model, "-c", "approval_policy=untrusted", "-c", "sandbox_mode=workspace-write", "-c", "calls.grace=0s", "-c", "http.drain_timeout=1h")

	t.Run("a stream goes on at the other front", func(t *testing.T) {
		session := c.at(0, "ann").initialize()
		answer := c.at(0, "ann").send(http.MethodPost, session, "", `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"wait for the stream"}}}`)
		lines := bufio.NewScanner(answer.Body)
		last := ""
		for last == "" && lines.Scan() {
			last, _ = strings.CutPrefix(lines.Text(), "id: ")
			if !strings.HasPrefix(lines.Text(), "id: ") {
				last = ""
			}
		}
		answer.Body.Close()
		if last == "" {
			t.Fatal("the stream has no id")
		}
		again := c.at(1, "ann").send(http.MethodGet, session, last, "")
		defer again.Body.Close()
		close(held)
		text, err := io.ReadAll(again.Body)
		if err != nil || !strings.Contains(string(text), "the answer to wait for the stream") {
			t.Errorf("%s %s, %v", again.Status, text, err)
		}
	})
	t.Run("a stranger", func(t *testing.T) {
		session, own := c.at(0, "ann").initialize(), c.at(1, "bob").initialize()
		answer := c.at(0, "ann").send(http.MethodPost, session, "", `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"a secret"}}}`)
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		_, last, _ := strings.Cut(string(text), "id: ")
		last, _, _ = strings.Cut(last, "\n")
		if err != nil || last == "" || !strings.Contains(string(text), "the answer to a secret") {
			t.Fatalf("%s, %v", text, err)
		}
		_, begun := c.at(0, "ann").ask("tools/call", "codex", `"name":"codex","arguments":{"prompt":"a secret"}`)
		task := member(t, begun, "taskId")
		for front := range 2 {
			bob := c.at(front, "bob")
			for _, tt := range []struct {
				method, session, last, message string
				want                           int
			}{
				{http.MethodGet, session, last, "", http.StatusNotFound}, {http.MethodGet, session, "", "", http.StatusNotFound},
				{http.MethodPost, session, "", `{"jsonrpc":"2.0","id":5,"method":"ping"}`, http.StatusNotFound},
				{http.MethodPost, session, "", `{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"decision":"approved"}}}`, http.StatusNotFound},
				{http.MethodDelete, session, "", "", http.StatusNotFound},
				{http.MethodGet, own, last, "", http.StatusBadRequest},
			} {
				got := bob.send(tt.method, tt.session, tt.last, tt.message)
				begin := make([]byte, 1000)
				n, _ := io.ReadFull(io.LimitReader(got.Body, int64(len(begin))), begin) // an error has few bytes
				got.Body.Close()
				if got.StatusCode != tt.want || strings.Contains(string(begin[:n]), "secret") {
					t.Errorf("front %d, %s of the session of ann: %s %s, want %d", front, tt.method, got.Status, begin[:n], tt.want)
				}
			}
			for method, params := range map[string]string{"tasks/get": "", "tasks/cancel": "", "tasks/update": `,"inputResponses":{"q1":{"action":"accept","content":{}}}`} {
				if _, got := bob.ask(method, task, `"taskId":"`+task+`"`+params); !strings.Contains(got, "no such task") {
					t.Errorf("front %d, %s: %s", front, method, got)
				}
			}
		}
		for user, session := range map[string]string{"ann": session, "bob": own} { // with a session a user would stay on a node that drains
			for _, message := range []string{`{"jsonrpc":"2.0","id":6,"method":"ping"}`, ""} {
				method := map[bool]string{true: http.MethodPost, false: http.MethodDelete}[message != ""]
				answer := c.at(1, user).send(method, session, "", message)
				answer.Body.Close()
				if answer.StatusCode/100 != 2 {
					t.Errorf("%s of the session of %s: %s", method, user, answer.Status)
				}
			}
		}
	})
	t.Run("a question of one front is answered at the other", func(t *testing.T) {
		for i := range 2 {
			file := "made" + strconv.Itoa(i)
			call := `"name":"codex","arguments":{"prompt":"touch ` + file + `"}`
			_, question := c.at(i, "ann").askAt(mcpPath, `"elicitation":{"form":{}}`, "tools/call", "codex", call)
			state := member(t, question, "requestState")
			_, got := c.at(i+1, "ann").askAt(mcpPath, `"elicitation":{"form":{}}`, "tools/call", "codex", call+`,"requestState":"`+state+`","inputResponses":{"q1":{"action":"accept","content":{"decision":"approved"}}}`)
			if _, err := os.Stat(filepath.Join(c.top, "ann", file)); err != nil || !strings.Contains(got, "the answer to touch") {
				t.Errorf("%v: %s", err, got)
			}
		}
	})
	t.Run("placement", func(t *testing.T) {
		if all := c.status(); len(all.Nodes) != 3 || len(all.Leases) != 2 {
			t.Errorf("the status: %+v", all)
		}
	})
	t.Run("drain", func(t *testing.T) {
		name := c.nodeOf("bob")
		dir, err := programs()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(filepath.Join(dir, program), "drain", name)
		cmd.Env = []string{"CODEX_HOME=" + filepath.Join(c.top, "server-front1"), "HOME=" + c.top}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		until(t, "bob stays there", func() bool { return c.nodeOf("bob") != name })
		if got := c.call(0, "bob", "hello"); got.status != 200 || c.nodeOf("bob") == name {
			t.Errorf("bob's call: %+v, on %s", got, c.nodeOf("bob"))
		}
		// The process ends for good, so that the node that is killed below has to be replaced by
		// one that is started again.
		if err := c.nodes[name].cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := c.nodes[name].wait(); code != 0 {
			t.Errorf("status %d: %s", code, c.nodes[name].errors())
		}
		c.restart(name, model)
	})
	for _, tt := range []struct {
		name string
		sig  syscall.Signal
		code int
	}{{"ends", syscall.SIGTERM, 0}, {"dies", syscall.SIGKILL, -1}} {
		t.Run("a node with a question "+tt.name, func(t *testing.T) {
			name, file, task := c.question("ann", "asked"+tt.name)
			if err := c.nodes[name].cmd.Process.Signal(tt.sig); err != nil {
				t.Fatal(err)
			}
			c.recover("ann", name)
			if code := c.nodes[name].wait(); code != tt.code {
				t.Errorf("status %d", code)
			}
			c.accept("ann", task) // it goes on at another node, which asks again; what it knows comes from NATS
			c.goOn(file)
			if got := c.await("ann", task, `"status":"completed"`); !strings.Contains(got, "the answer to append") {
				t.Errorf("the task: %s", got)
			}
			c.ranOnce(file)
			c.restart(name, model)
		})
	}
	t.Run("a node with a command ends", func(t *testing.T) {
		name, file, task := c.question("ann", "commanded")
		c.accept("ann", task)
		until(t, "the command does not begin", func() bool { text, _ := os.ReadFile(file); return len(text) > 0 })
		if err := c.nodes[name].cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		until(t, "it does not drain", func() bool {
			return slices.ContainsFunc(c.status().Nodes, func(n nodeStatus) bool { return n.Name == name && n.Draining })
		})
		for i := range 4 { // the user can work meanwhile
			if got := c.call(i, "ann", "hello"); got.status != 200 || c.nodeOf("ann") != name {
				t.Errorf("a call: %+v, on %s", got, c.nodeOf("ann"))
			}
		}
		c.goOn(file)
		if got := c.await("ann", task, `"status":"completed"`); !strings.Contains(got, "the answer to append") || strings.Contains(got, "interrupted") {
			t.Errorf("the task: %s", got)
		}
		if code := c.nodes[name].wait(); code != 0 {
			t.Errorf("status %d", code)
		}
		c.ranOnce(file)
		c.recover("ann", name)
		c.restart(name, model)
	})
	t.Run("a node is stopped for longer than its lease", func(t *testing.T) {
		if got := c.call(0, "ann", "hello"); got.status != 200 {
			t.Fatalf("before: %+v", got)
		}
		name := c.nodeOf("ann")
		stopped := c.nodes[name]
		if running := c.workersOf(stopped); len(running) != 1 {
			t.Fatalf("the workers of ann: %v", running)
		}
		if err := stopped.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		c.recover("ann", name)
		if running := c.workersOf(stopped); len(running) > 0 {
			t.Errorf("the workers %v of the stopped process run next to the new one", running)
		}
		if err := stopped.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if got := c.call(1, "ann", "hello"); got.status != 200 || c.nodeOf("ann") == name {
			t.Errorf("afterwards: %+v, on %s", got, c.nodeOf("ann"))
		}
	})
	t.Run("a NATS server dies", func(t *testing.T) {
		c.nats[0].Shutdown()
		c.nats[0].WaitForShutdown()
		c.recover("ann", "")
		c.recover("bob", "")
	})
	t.Run("a front dies", func(t *testing.T) {
		session := c.at(0, "ann").initialize()
		if err := c.fronts[0].cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-c.fronts[0].exited
		if status := c.at(1, "ann").ping(session); status != http.StatusOK {
			t.Errorf("the session of the front that died: %d", status)
		}
	})
}

// question begins a task of a user, whose command asks and then waits for a file. It returns the node of the
// user, the file that the command writes, and the task.
func (c *cluster) question(user, name string) (node, file, task string) {
	c.t.Helper()
	_, begun := c.at(0, user).askAt(mcpPath, asking, "tools/call", "codex", `"name":"codex","arguments":{"prompt":"append to `+name+`"}`)
	task = member(c.t, begun, "taskId")
	c.await(user, task, `"status":"input_required"`)
	return c.nodeOf(user), filepath.Join(c.top, user, name), task
}

// accept answers the open question of a task.
func (c *cluster) accept(user, task string) {
	c.t.Helper()
	got := c.await(user, task, `"status":"input_required"`)
	_, questions, _ := strings.Cut(got, `"inputRequests":{"`)
	key, _, _ := strings.Cut(questions, `"`)
	if status, got := c.at(1, user).askAt(mcpPath, asking, "tasks/update", task, `"taskId":"`+task+`","inputResponses":{"`+key+`":{"action":"accept","content":{}}}`); status != 200 {
		c.t.Fatalf("%d %s", status, got)
	}
}

// goOn lets the command of a question end.
func (c *cluster) goOn(file string) {
	c.t.Helper()
	if err := os.WriteFile(file+".go", nil, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// ranOnce checks that the command of a question has run once, to its end.
func (c *cluster) ranOnce(file string) {
	c.t.Helper()
	if text, err := os.ReadFile(file); err != nil || string(text) != "begun\nended\n" {
		c.t.Errorf("the command has written %q, %v", text, err)
	}
}

// workersOf returns the ids of the processes of a node's workers.
func (c *cluster) workersOf(p *process) (running []int) {
	c.t.Helper()
	for _, pid := range p.children() {
		at, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		if err == nil && at == c.top+"/ann" && !dead(pid) {
			running = append(running, pid)
		}
	}
	return running
}

// asking are the capabilities of a client with tasks that shows questions.
const asking = `"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}`

// await asks both fronts in turns for a task until it has a status, and returns the answer.
func (c *cluster) await(user, task, status string) (got string) {
	c.t.Helper()
	front := 0
	until(c.t, "the task is not "+status, func() bool {
		front++
		_, got = c.at(front, user).askAt(mcpPath, asking, "tasks/get", task, `"taskId":"`+task+`"`)
		return strings.Contains(got, status)
	})
	return got
}

// restart starts a node again.
func (c *cluster) restart(name string, model *providertest.Server) {
	c.t.Helper()
	<-c.nodes[name].exited
	s := c.launch(folders{home: filepath.Join(c.top, "server-"+name), cwd: c.top, user: c.top + "/user"}, model, []string{"-c", "approval_policy=untrusted"})
	c.nodes[name] = s.process
	until(c.t, "the node does not start again", func() bool { return strings.Contains(s.errors(), "running workers") })
}

// initialize begins a session.
func (s *httpServer) initialize() string {
	s.t.Helper()
	answer := s.send(http.MethodPost, "", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	answer.Body.Close()
	session := answer.Header.Get("Mcp-Session-Id")
	if session == "" {
		s.t.Fatalf("no session: %s", answer.Status)
	}
	return session
}

// ping sends a request of a session.
func (s *httpServer) ping(session string) (status int) {
	s.t.Helper()
	answer := s.send(http.MethodPost, session, "", `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	answer.Body.Close()
	return answer.StatusCode
}

// bounded is the longest that a request takes while parts of the service die. Only the time until
// a worker has started is longer on a slow machine.
const bounded = 30 * time.Second

// call sends a call, which must end in time.
func (c *cluster) call(front int, user, prompt string) reply {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), bounded)
	defer cancel()
	status, body, err := c.at(front, user).client().Call(ctx, "codex", `"name":"codex","arguments":{"prompt":"`+prompt+`"}`, "")
	return reply{status, body, err}
}

// recover sends calls of a user to both fronts in turns, until each front has answered one by
// another node than gone, which has the user then: on a slow machine it may lose the lease right
// after the answer. Each call must end with a result or with an error that says what happened.
func (c *cluster) recover(user, gone string) {
	c.t.Helper()
	answered, at := map[int]bool{}, ""
	for i, deadline := 0, time.Now().Add(patience); len(answered) < len(c.fronts) || at == ""; i++ {
		if time.Now().After(deadline) {
			c.t.Fatal("the service does not recover")
		}
		got := c.call(i, user, "hello")
		switch {
		case got.err == nil && got.status == http.StatusOK && strings.Contains(got.body, "the answer to hello"):
			if at = c.nodeOf(user); at != gone { // one that drains still answers
				answered[i%2] = true
			}
		case got.err == nil && (got.status == http.StatusServiceUnavailable || got.status == http.StatusBadGateway) && strings.Contains(got.body, "worker process"):
		default:
			c.t.Fatalf("a call after the loss: status %d, body %q, error %v", got.status, got.body, got.err)
		}
	}
	if at == gone {
		c.t.Errorf("%s is on %q", user, at)
	}
}
