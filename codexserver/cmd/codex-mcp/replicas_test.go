//go:build replicas

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// replica is one of three servers with one home, with a model of its own.
type replica struct {
	*httpServer
	name  string
	model *providertest.Server
	spelt string // a spelling of Bearer, whose requests come here
}

// cluster is three replicas behind the HAProxy of docs/operating.md.
type cluster struct {
	t        *testing.T
	folders  folders
	replicas []*replica
	client   *http.Client
	token    string
}

// host is the host name of the servers for clients.
const host = "codex.example.com"

// startReplicas starts the cluster. Each replica answers with its name.
func startReplicas(t *testing.T) *cluster {
	t.Helper()
	p := &cluster{t: t, folders: newFolders(t)}
	port := freePort(t)
	changes := []string{":443 ", "127.0.0.1:" + port + " "}
	for i, name := range []string{"a", "b", "c"} {
		r := &replica{name: name, model: providertest.New(
			providertest.Turn{Match: "word-quick", Text: []string{"answer of " + name + "."}, Repeat: true},
			providertest.Turn{Match: `call_id":"c"`, Text: []string{"answer of " + name + "."}, Repeat: true},
			providertest.Turn{Match: "word-ask", ToolCalls: []providertest.ToolCall{providertest.Shell("c", "touch", "made")}, Repeat: true},
		)}
		t.Cleanup(r.model.Close)
		p.start(r)
		p.replicas, p.token = append(p.replicas, r), r.token
		changes = append(changes, fmt.Sprintf("127.0.0.1:%d\n", 4517+i), strings.TrimPrefix(r.url, "http://")+"\n")
	}
	dir := t.TempDir()
	pair := certificate(t)
	file := filepath.Join(dir, "codex-mcp.pem")
	if err := os.WriteFile(file, pair, 0o600); err != nil {
		t.Fatal(err)
	}
	p.startProxy(dir, append(changes, "/etc/haproxy/codex-mcp.pem", file))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pair)
	p.client = &http.Client{Transport: &http.Transport{
		// The certificate has other names.
		TLSClientConfig: &tls.Config{RootCAs: roots, InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1:"+port)
		},
	}}
	t.Cleanup(p.client.CloseIdleConnections)
	p.await("the proxy", func() bool {
		answer, err := p.client.Get("https://" + host + "/")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusNotFound
	})
	return p
}

// certificate returns a certificate and its key, in PEM.
func certificate(t *testing.T) []byte {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
}

// start starts a replica, at its old address if it ran before.
func (p *cluster) start(r *replica) {
	p.t.Helper()
	args := []string{"--behind-proxy", "127.0.0.1", "-a", "untrusted", "-c", `http.hosts=["` + host + `"]`,
		"-c", "drain.timeout=1h", "-c", "tasks.grace=0s", "-c", "tasks.resume=false", "-c", fmt.Sprintf("model_providers.mock.base_url=%q", r.model.BaseURL())}
	if r.httpServer != nil {
		args = append(args, "--listen", strings.TrimPrefix(r.url, "http://"))
	}
	r.httpServer = startHTTP(p.t, p.folders, r.model, args...)
}

// startProxy runs HAProxy with the configuration of the documentation, with other addresses.
func (p *cluster) startProxy(dir string, changes []string) {
	p.t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operating.md"))
	if err != nil {
		p.t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```haproxy\n(.*?)```").FindSubmatch(page)
	if block == nil {
		p.t.Fatal("docs/operating.md has no configuration of HAProxy")
	}
	text := string(block[1])
	for i := 0; i < len(changes); i += 2 {
		if strings.Count(text, changes[i]) != 1 {
			p.t.Fatalf("the configuration does not have exactly one %q:\n%s", changes[i], text)
		}
	}
	file := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(file, []byte(strings.NewReplacer(changes...).Replace(text)), 0o600); err != nil {
		p.t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command("haproxy", "-db", "-f", file)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if p.t.Failed() {
			p.t.Logf("HAProxy: %s", said.String())
		}
	})
}

// await waits until a condition is true.
func (p *cluster) await(what string, is func() bool) {
	p.t.Helper()
	for until := time.Now().Add(patience); !is(); {
		if time.Now().After(until) {
			p.t.Fatalf("%s: not in time", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// send sends a message as the principal that a spelling of Bearer stands for.
func (p *cluster) send(spelt, body string, headers map[string]string) *http.Response {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	p.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+host+mcpPath, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", spelt+" "+p.token)
	r.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	answer, err := p.client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer
}

// post sends a message and reads the whole answer.
func (p *cluster) post(spelt, body string, headers map[string]string) (status int, answer string) {
	p.t.Helper()
	a := p.send(spelt, body, headers)
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return a.StatusCode, string(b)
}

const (
	noTasks   = `{}`
	withTasks = `{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
)

// modern sends a request of 2026-07-28.
func (p *cluster) modern(spelt, method, name, params, capabilities string, headers ...string) (status int, answer string) {
	p.t.Helper()
	h := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name}
	for i := 0; i < len(headers); i += 2 {
		h[headers[i]] = headers[i+1]
	}
	return p.post(spelt, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`+capabilities+`}}}`, h)
}

// codex calls the tool codex.
func (p *cluster) codex(spelt, prompt, capabilities string) string {
	p.t.Helper()
	status, answer := p.modern(spelt, "tools/call", "codex", `"name":"codex","arguments":{"prompt":"`+prompt+`"}`, capabilities)
	if status != http.StatusOK {
		p.t.Fatalf("codex: %d %s", status, answer)
	}
	return answer
}

// between returns the text between two parts of it.
func between(t *testing.T, text, before, after string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, before)
	part, _, ended := strings.Cut(rest, after)
	if !found || !ended {
		t.Fatalf("no %s…%s: %s", before, after, text)
	}
	return part
}

// task begins a task and returns its id.
func (p *cluster) task(spelt, prompt string) string {
	p.t.Helper()
	return between(p.t, p.codex(spelt, prompt, withTasks), `"taskId":"`, `"`)
}

// get polls a task.
func (p *cluster) get(spelt, id string) string {
	p.t.Helper()
	_, answer := p.modern(spelt, "tasks/get", id, `"taskId":"`+id+`"`, withTasks)
	return answer
}

// until polls a task until the answer has a part.
func (p *cluster) until(spelt, id, part string) (answer string) {
	p.t.Helper()
	p.await("the task with "+part, func() bool {
		answer = p.get(spelt, id)
		return strings.Contains(answer, part)
	})
	return answer
}

// spell finds principals whose requests go to each replica: the proxy chooses by the header,
// and the server accepts each spelling of Bearer.
func (p *cluster) spell() {
	p.t.Helper()
	for i := range 64 {
		b := []byte("bearer")
		for bit := range b {
			if i>>bit&1 == 1 {
				b[bit] -= 'a' - 'A'
			}
		}
		answer := p.codex(string(b), "word-quick", noTasks)
		left := 0
		for _, r := range p.replicas {
			if r.spelt == "" && strings.Contains(answer, "answer of "+r.name+".") {
				r.spelt = string(b)
			}
			if r.spelt == "" {
				left++
			}
		}
		if left == 0 {
			return
		}
	}
	p.t.Fatal("a replica gets no principal")
}

// other returns a principal of another replica.
func (p *cluster) other(i int) string { return p.replicas[(i+1)%len(p.replicas)].spelt }

// TestReplicas sends requests to three replicas through a real HAProxy, with the configuration
// in docs/operating.md.
func TestReplicas(t *testing.T) {
	p := startReplicas(t)
	p.spell()
	for i, r := range p.replicas {
		// A principal's requests go to one replica.
		for range 3 {
			if got := p.codex(r.spelt, "word-quick", noTasks); !strings.Contains(got, "answer of "+r.name+".") {
				t.Errorf("a call for %s: %s", r.name, got)
			}
		}
		// An approval in a task. The task's id chooses the replica: the requests look like those
		// of another principal.
		id := p.task(r.spelt, "word-ask")
		key := between(t, p.until(r.spelt, id, `"status":"input_required"`), `"inputRequests":{"`, `"`)
		params := `"taskId":"` + id + `","inputResponses":{"` + key + `":{"action":"accept","content":{}}}`
		if status, got := p.modern(p.other(i), "tasks/update", id, params, withTasks); status != http.StatusOK || strings.Contains(got, `"error"`) {
			t.Errorf("an answer for %s: %d %s", r.name, status, got)
		}
		if got := p.until(p.other(i), id, `"status":"completed"`); !strings.Contains(got, "answer of "+r.name+".") {
			t.Errorf("the task of %s: %s", r.name, got)
		}
		// A header with the thread's id chooses the replica of a reply.
		thread, _, _ := strings.Cut(id, ".")
		reply := `"name":"codex-reply","arguments":{"prompt":"word-quick","threadId":"` + thread + `"}`
		if _, got := p.modern(p.other(i), "tools/call", "codex-reply", reply, noTasks, "Mcp-Param-Thread-Id", thread); !strings.Contains(got, "answer of "+r.name+".") {
			t.Errorf("a reply for %s: %s", r.name, got)
		}
		p.round(i)
		p.session(i)
	}
	p.kill()
	p.start(p.replicas[1])
	p.drain()
}

// round answers a question that is the result of a call.
func (p *cluster) round(i int) {
	r := p.replicas[i]
	call := `"name":"codex","arguments":{"prompt":"word-ask"}`
	const forms = `{"elicitation":{"form":{}}}`
	_, got := p.modern(r.spelt, "tools/call", "codex", call, forms)
	state, key := between(p.t, got, `"requestState":"`, `"`), between(p.t, got, `"inputRequests":{"`, `"`)
	_, got = p.modern(r.spelt, "tools/call", "codex", call+`,"requestState":"`+state+`","inputResponses":{"`+key+`":{"action":"accept","content":{}}}`, forms)
	if !strings.Contains(got, "answer of "+r.name+".") {
		p.t.Errorf("the second round for %s: %s", r.name, got)
	}
}

// session asks a client with a handshake. Only the session id chooses the replica of its later
// requests.
func (p *cluster) session(i int) {
	r := p.replicas[i]
	begun := p.send(r.spelt, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`, nil)
	begun.Body.Close()
	h := map[string]string{"Mcp-Session-Id": begun.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": "2025-11-25"}
	stream := p.send(p.other(i), `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"word-ask"}}}`, h)
	defer stream.Body.Close()
	var read strings.Builder
	question := func() string {
		b := make([]byte, 4096)
		for {
			if _, rest, ok := strings.Cut(read.String(), `"method":"elicitation/create"`); ok && strings.Contains(rest, "\n") {
				return read.String()
			}
			n, err := stream.Body.Read(b)
			if read.Write(b[:n]); err != nil {
				p.t.Fatalf("the session of %s: %v %s", r.name, err, read.String())
			}
		}
	}()
	line := question[:strings.Index(question, `"method":"elicitation/create"`)]
	id := between(p.t, line[strings.LastIndex(line, "data: "):]+",", `"id":`, ",")
	if status, got := p.post(p.other(i), `{"jsonrpc":"2.0","id":`+id+`,"result":{"action":"accept","content":{}}}`, h); status != http.StatusAccepted {
		p.t.Errorf("an answer in the session of %s: %d %s", r.name, status, got)
	}
	rest, err := io.ReadAll(stream.Body)
	if err != nil || !strings.Contains(string(rest), "answer of "+r.name+".") {
		p.t.Errorf("the session of %s: %v %s", r.name, err, rest)
	}
}

// kill kills a replica while each has a task.
func (p *cluster) kill() {
	t := p.t
	held, ids := make(chan struct{}), make([]string, len(p.replicas))
	for i, r := range p.replicas {
		r.model.Add(providertest.Turn{Match: "word-held", Text: []string{"held by " + r.name}, Wait: held})
		ids[i] = p.task(r.spelt, "word-held")
		p.until(r.spelt, ids[i], `"status":"working"`)
	}
	dead := p.replicas[1]
	if err := dead.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-dead.exited
	if got := p.until(dead.spelt, ids[1], `"status":"completed"`); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "The server ended while this task ran") {
		t.Errorf("the task of the killed replica: %s", got)
	}
	for _, i := range []int{0, 2} {
		if got := p.get(p.replicas[i].spelt, ids[i]); !strings.Contains(got, `"status":"working"`) || strings.Contains(got, "served by process") {
			t.Errorf("the task of %s: %s", p.replicas[i].name, got)
		}
	}
	if got := p.codex(dead.spelt, "word-quick", noTasks); !strings.Contains(got, "answer of a.") && !strings.Contains(got, "answer of c.") {
		t.Errorf("a new call of the killed replica's principal: %s", got)
	}
	thread, _, _ := strings.Cut(ids[1], ".")
	reply := `"name":"codex-reply","arguments":{"prompt":"word-quick","threadId":"` + thread + `"}`
	if _, got := p.modern(dead.spelt, "tools/call", "codex-reply", reply, noTasks, "Mcp-Param-Thread-Id", thread); !strings.Contains(got, "answer of a.") && !strings.Contains(got, "answer of c.") {
		t.Errorf("a reply to the killed replica's conversation: %s", got)
	}
	close(held)
	for _, i := range []int{0, 2} {
		if got := p.until(p.replicas[i].spelt, ids[i], `"status":"completed"`); !strings.Contains(got, "held by "+p.replicas[i].name) {
			t.Errorf("the task of %s: %s", p.replicas[i].name, got)
		}
	}
}

// drain ends a replica in an orderly way while it has a task: new requests go to another
// replica.
func (p *cluster) drain() {
	t, leaving := p.t, p.replicas[0]
	held := make(chan struct{})
	leaving.model.Add(providertest.Turn{Match: "word-last", Text: []string{"last of a"}, Wait: held})
	id := p.task(leaving.spelt, "word-last")
	p.until(leaving.spelt, id, `"status":"working"`)
	if err := leaving.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.await("the drain", func() bool { return leaving.get("/readyz") == http.StatusServiceUnavailable })
	for range 3 {
		if got := p.codex(leaving.spelt, "word-quick", noTasks); !strings.Contains(got, "answer of b.") && !strings.Contains(got, "answer of c.") {
			t.Errorf("a new call while a drains: %s", got)
		}
	}
	if got := p.get(leaving.spelt, id); !strings.Contains(got, `"status":"working"`) || strings.Contains(got, "served by process") {
		t.Errorf("the task while a drains: %s", got)
	}
	close(held)
	if got := p.until(leaving.spelt, id, `"status":"completed"`); !strings.Contains(got, "last of a") {
		t.Errorf("the task at the end of a: %s", got)
	}
	select {
	case <-leaving.exited:
	case <-time.After(patience):
		t.Error("a does not end")
	}
}
