package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/certtest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// builtPrograms names, for a process that this test starts, the folder of [programs].
const builtPrograms = "CODEX_MCP_TEST_PROGRAMS"

// programs builds the gateway, a NATS server and codex-mcp once, in one folder.
var programs = sync.OnceValues(func() (dir string, err error) {
	if dir := os.Getenv(builtPrograms); dir != "" {
		return dir, nil
	}
	if dir, err = os.MkdirTemp("", "codex-mcp-gateway"); err != nil {
		return "", err
	}
	for at, packages := range map[string][]string{".": {".", "github.com/nats-io/nats-server/v2"}, "../../../..": {"./codexserver/cmd/codex-mcp"}} {
		cmd := exec.Command("go", append([]string{"build", "-buildvcs=false", "-o", dir + "/"}, packages...)...)
		cmd.Dir = at
		if out, err := cmd.CombinedOutput(); err != nil {
			return dir, fmt.Errorf("go build %q: %v\n%s", packages, err, out)
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	enclosure.Main()
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // nearly all that they do is to wait for processes
	code := m.Run()
	if dir, _ := programs(); dir != "" && os.Getenv(builtPrograms) == "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

func built(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	dir := must.Get(programs())(t)
	return exec.Command(filepath.Join(dir, name), args...)
}

func gateway(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return built(t, program, args...)
}

type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr servertest.Journal
	exited chan struct{} // closed when the process is gone
	code   int
}

func (p *process) errors() string { return p.stderr.String() }

// serves waits until the gateway says where it serves MCP, and returns the URL without the path.
func (p *process) serves() (url string) {
	p.t.Helper()
	clustertest.Until(p.t, "it does not serve", func() (ok bool) {
		_, rest, _ := strings.Cut(p.errors(), "serving MCP at ")
		url, _, ok = strings.Cut(rest, mcpPath+";")
		return ok
	})
	return url
}

func (p *process) wait() int {
	p.t.Helper()
	clustertest.Await(p.t, "the process did not end", p.exited)
	return p.code
}

func (p *process) children() (all []int) {
	p.t.Helper()
	out, _ := exec.Command("pgrep", "-P", strconv.Itoa(p.cmd.Process.Pid)).Output() // fails without a child
	for word := range strings.FieldsSeq(string(out)) {
		pid := must.Get(strconv.Atoi(word))(p.t)
		all = append(all, pid)
	}
	return all
}

// launch starts a command in a folder, which is also its user's, and kills it at the end of the test. Its Env is added to.
func launch(t *testing.T, dir, home string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, exited: make(chan struct{})}
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "PATH="+os.Getenv("PATH"), "HOME="+dir, "CODEX_HOME="+home, "LANG=C.UTF-8")
	cmd.Stderr = &p.stderr
	cmd.WaitDelay = clustertest.Patience // for a worker that still has standard error
	must.OK(t, cmd.Start())
	go func() {
		defer close(p.exited)
		_ = cmd.Wait() // the status is looked at
		p.code = cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("stderr:\n%s", p.errors())
		}
	})
	return p
}

// newUsers makes the folders of users below top, and returns their tables of codex-mcp.toml and their tokens.
func newUsers(t *testing.T, top string, names ...string) (tables string, tokens map[string]string) {
	t.Helper()
	tokens = map[string]string{}
	for _, name := range names {
		token, hash := access.NewToken()
		boxtest.Lay(t, top, name+"/")
		tokens[name] = token
		tables += fmt.Sprintf("\n[http.principals.%s]\ntokens = [%q]\nfolders = [%q]\n", name, hash, filepath.Join(top, name))
	}
	return tables, tokens
}

// configFor returns a configuration, without a policy, for the address of a model.
func configFor(url string) string {
	return fmt.Sprintf(`model = "mock-model"
sandbox_mode = "danger-full-access"
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = %q
`, url)
}

// helping starts a model, which answers as answerOf says.
func helping(t *testing.T) (model *providertest.Server, held chan struct{}) {
	t.Helper()
	held = make(chan struct{})
	model = providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn { return answerOf(r, held) }})
	t.Cleanup(model.Close)
	return model, held
}

// answerOf returns the answer to a prompt. One that begins with run is a script to run, with view a picture to see; one that
// begins with wait is answered after held is closed.
func answerOf(r providertest.Request, held <-chan struct{}) providertest.Turn {
	word, rest, _ := strings.Cut(r.LastUserText(), " ")
	asked := len(r.ToolOutputs()) == 0
	switch {
	case asked && word == "run":
		return providertest.Call(providertest.Shell("c1", "sh", "-c", rest))
	case asked && word == "view":
		return providertest.Call(providertest.Tool("c1", "view_image", map[string]any{"path": rest}))
	}
	turn := providertest.Say("the answer to " + r.LastUserText())
	if word == "wait" {
		turn.Wait = held
	}
	return turn
}

type client struct {
	t *testing.T
	servertest.HTTPClient
}

// The capabilities of a client: it has tasks, and it shows questions.
const (
	hasTasks = `"extensions":{"io.modelcontextprotocol/tasks":{}}`
	asking   = `"elicitation":{"form":{}},` + hasTasks
)

// do is Ask for a client with tasks that gets an answer.
func (c client) do(method, name, params string) (status int, body string) {
	c.t.Helper()
	status, body, err := c.Ask(clustertest.Bounded(c.t), hasTasks, method, name, params)
	must.OK(c.t, err)
	return status, body
}

// call calls the tool codex with a prompt, without tasks.
func (c client) call(prompt string) (status int, body string, err error) {
	return c.Ask(clustertest.Bounded(c.t), "", "tools/call", "codex", promptOf(prompt))
}

func promptOf(prompt string) string {
	return fmt.Sprintf(`"name":"codex","arguments":{"prompt":%q}`, prompt)
}

// begin makes a task of a prompt, and returns its id.
func (c client) begin(prompt string) string {
	c.t.Helper()
	_, body := c.do("tools/call", "codex", promptOf(prompt))
	return member(c.t, body, "taskId")
}

// member returns the value of the first string member with a name.
func member(t *testing.T, body, name string) string {
	t.Helper()
	text, ok := textOf(body, `"`+name+`":"`)
	if !ok {
		t.Fatalf("no %s in %s", name, body)
	}
	return text
}

// textOf returns what is between some words and the next quotation mark.
func textOf(body, after string) (text string, ok bool) {
	_, rest, ok := strings.Cut(body, after)
	text, _, _ = strings.Cut(rest, `"`)
	return text, ok
}

// writeCertificate writes a certificate of servers on loopback, of the clients of NATS, and of fronts and nodes, and its
// key, in PEM.
func writeCertificate(t *testing.T, file string) []byte {
	t.Helper()
	cert, key := certtest.New(t, "gateway.example.com")
	text := append(cert, key...)
	must.OK(t, os.WriteFile(file, text, 0o600))
	return text
}
