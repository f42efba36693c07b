package native_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/hosts"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// online is a server with the native engine in an internet of one other server, and what came of a turn there.
type online struct {
	*bench
	dir     string // with the folder that commands work in, and a cache
	server  *codexserver.Server
	options *codexserver.Options
	log     bytes.Buffer // the record

	mu        sync.Mutex
	questions []string
	answer    elicit.Decision // "" never comes
	arguments map[string]any  // of the call
}

// newOnline begins a server, whose model makes some calls of the shell. Each name below example.com leads to a server of h,
// but inside.example.com to a private address.
func newOnline(t *testing.T, h http.Handler, policy protocol.ApprovalPolicy, rules approval.Rules, calls ...[]string) *online {
	t.Helper()
	if err := box.HostsAvailable(); err != nil {
		t.Skip(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it
	s.StartTLS()
	t.Cleanup(s.Close)
	o := &online{dir: boxtest.Folder(t), arguments: map[string]any{"sandbox": "workspace-write", "approval-policy": policy}}
	ca := filepath.Join(o.dir, "ca.pem")
	boxtest.Lay(t, o.dir, "work/", "cache/", "ca.pem="+string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	var turns []providertest.Turn
	for i, argv := range calls {
		turns = append(turns, providertest.Call(providertest.Shell(fmt.Sprintf("c%d", i), argv...)))
	}
	o.bench = setup(t, "---\n"+workspaceOnly+fmt.Sprintf("writable_roots = [%q]\n", o.dir+"/cache"), native.Limits{}, append(turns, providertest.Say("done"))...)
	o.engine = open(t, native.Options{CodexHome: o.home, Hosts: true, Environ: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + o.dir, "LC_ALL=C", "SSL_CERT_FILE=" + ca, "GIT_SSL_CAINFO=" + ca, "npm_config_cafile=" + ca,
		"npm_config_registry=https://registry.example.com/", "npm_config_cache=" + o.dir + "/cache", "npm_config_update_notifier=false",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "NODE_EXTRA_CA_CERTS=" + ca,
	}})
	native.SetHosts(o.engine, &hosts.Proxy{
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(map[bool]string{true: "10.0.0.1", false: "93.184.215.14"}[strings.HasPrefix(host, "inside.")])}, nil
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
		},
		Upstream: func(*http.Request) (*url.URL, error) { return nil, nil },
	})
	o.options = &codexserver.Options{
		Record: &o.log, Rules: rules, Home: o.home, Folder: filepath.Join(o.dir, "work"), Approvals: elicit.Options{Schema: elicit.FormDecision},
		Changes: codexserver.ChangeOptions{Read: new(false)}, Calls: codexserver.CallOptions{FullAccess: setting.FullAccessAllow},
	}
	o.server = codexserver.New(o.engine, o.options)
	return o
}

// turn runs a turn, and returns its result and what the model read of its last command.
func (o *online) turn(t *testing.T) (client.Result, string) {
	t.Helper()
	r := o.call(t)
	all := o.provider.Requests()
	said, _, _ := strings.Cut(string(all[len(all)-1].Body), `"tools":[`)
	return r, strings.ReplaceAll(said, `\"`, `"`)
}

// call runs a turn, and returns its result.
func (o *online) call(t *testing.T) client.Result {
	t.Helper()
	c := must.Get(client.Start(t.Context(), &client.Options{Server: o.server, Ask: func(ctx context.Context, q *client.Question) elicit.Outcome {
		o.mu.Lock()
		o.questions = append(o.questions, q.Message)
		o.mu.Unlock()
		if o.answer == "" {
			<-ctx.Done()
		}
		return elicit.Outcome{Decision: o.answer}
	}}))(t)
	r := must.Get(c.Run(t.Context(), client.Task{Prompt: "go", Arguments: o.arguments}))(t)
	must.OK(t, c.Close())
	return r
}

// kept returns the lines of the record of an event.
func (o *online) kept(t *testing.T, event record.Event) (all []record.Line) {
	t.Helper()
	for text := range strings.Lines(o.log.String()) {
		if l := must.Get(record.Parse([]byte(text)))(t); l.Event == event {
			all = append(all, l)
		}
	}
	return all
}

// internet is what the servers have: a repository of git, a module of Go, a package of pip, a crate of cargo, and three packages
// of npm, of which one has a script that tries to write outside.
func internet(t *testing.T) http.Handler {
	t.Helper()
	top := boxtest.Folder(t)
	boxtest.Lay(t, top, "repo/", "example.com/m/@v/v1.0.0.mod=module example.com/m\n",
		`example.com/m/@v/v1.0.0.info={"Version":"v1.0.0","Time":"2001-02-03T04:05:06Z"}`, `simple/three/index.html=<a href="three-1.0.0.tar.gz">three-1.0.0.tar.gz</a>`,
		`crates/config.json={"dl":"https://one.example.com"}`, `crates/th/re/three={"name":"three","vers":"1.0.0","deps":[],"features":{},"yanked":false,"cksum":"`+strings.Repeat("0", 64)+`"}`)
	for _, args := range []string{"init -q", "commit -q --allow-empty -m first", "update-server-info"} {
		servertest.Git(t, filepath.Join(top, "repo"), strings.Fields(args)...)
	}
	const script = `node -e \"try { require('fs').writeFileSync(process.env.HOME + '/evil', 'x') } catch (e) { require('fs').writeFileSync(process.env.INIT_CWD + '/why', e.code) }\"`
	for name, about := range map[string]string{"one": `"dependencies":{"two":"^1.0.0"}`, "two": `"dependencies":{}`, "three": `"scripts":{"postinstall":"` + script + `"}`} {
		about = fmt.Sprintf(`"name":%q,"version":"1.0.0",%s`, name, about)
		boxtest.Lay(t, top, "package/package.json={"+about+"}",
			fmt.Sprintf(`%s={"name":%[1]q,"dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{%s,"dist":{"tarball":"https://registry.example.com/%[1]s.tgz"}}}}`, name, about))
		pack := exec.CommandContext(t.Context(), "tar", "czf", name+".tgz", "package")
		pack.Dir = top
		must.OK(t, pack.Run())
	}
	return http.FileServer(http.Dir(top))
}

// reach is a command that asks for a host, waits at most a number of seconds, and prints the first line of the answer.
func reach(host string, seconds int) []string {
	return []string{"timeout", fmt.Sprint(seconds), "bash", "-c", `exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT ` + host + `:443 HTTP/1.1\r\n\r\n' >&3; read -r line <&3; echo "got $line"`}
}

// TestHosts has programs as they are installed, each of which works with the host allowed and fails without, with the words of
// the proxy where it prints them; and answers, of which each counts for what it says.
func TestHosts(t *testing.T) {
	const (
		one, two, registry = "one.example.com", "two.example.com", "registry.example.com"
		no                 = ": one.example.com was refused: declined"
		npmNo              = "(Network: registry.example.com was refused: declined"
		npmRule            = npmNo + ": nobody can be asked here for approvals.hosts, so only a rule such as {host = "
		added              = "added 3 packages"
	)
	script := func(text string) [][]string { return [][]string{{"bash", "-c", text}} }
	npm := [][]string{{"npm", "install", "--no-audit", "--no-fund", "one", "three"}}
	addresses := script(`for i in $(seq 15); do exec 3<>/dev/tcp/127.0.0.1/3128; printf "CONNECT 10.0.0.$i:443 HTTP/1.1\r\n\r\n" >&3; read -r line <&3; exec 3>&-; done`)
	allow := approval.Rules{Hosts: approval.HostRules{Allow: []string{"*.example.com"}}}
	world := internet(t)
	type row struct {
		name    string
		policy  protocol.ApprovalPolicy
		rules   approval.Rules
		calls   [][]string
		answer  elicit.Decision
		asked   int
		used    []string // hosts by each command
		refused int
		read    string // what the model reads
	}
	rows := []row{
		{"npm", "on-request", approval.Rules{}, npm, elicit.Approved, 1, []string{registry}, 0, added},
		{"npm by a rule", "on-request", allow, npm, elicit.Denied, 0, []string{registry}, 0, added},
		{"npm by a rule under never", "never", allow, npm, elicit.Denied, 0, []string{registry}, 0, added},
		{"npm declined", "on-request", approval.Rules{}, npm, elicit.Denied, 1, []string{""}, 1, npmNo},
		{"npm declined after a failure", "on-failure", approval.Rules{}, npm, elicit.Denied, 1, []string{""}, 1, npmNo},
		{"npm under never", "never", approval.Rules{}, npm, elicit.Approved, 0, []string{""}, 1, npmRule},
		{"once", "on-request", approval.Rules{}, [][]string{reach(one, 20), reach(one, 20)}, elicit.Approved, 2, []string{one, one}, 0, "got HTTP/1.1 200"},
		{"for the session", "on-request", approval.Rules{}, [][]string{reach(one, 20), reach(one, 20), reach(two, 20)}, elicit.ApprovedForSession, 2, []string{one, one, two}, 0, "got HTTP/1.1 200"},
		{"always", "on-request", approval.Rules{}, [][]string{reach(one, 20), reach(one, 20)}, elicit.ApprovedAlways, 1, []string{one, one}, 0, "got HTTP/1.1 200"},
		{"no", "on-request", approval.Rules{}, [][]string{reach(one, 20), reach(one, 20)}, elicit.Denied, 2, []string{"", ""}, 2, "got HTTP/1.1 403 codex-mcp" + no},
		{"cancel", "on-request", approval.Rules{}, [][]string{reach(one, 20), reach(two, 20)}, elicit.Abort, 1, nil, 1, ""},
		{"a private address", "on-request", approval.Rules{}, [][]string{reach("inside.example.com", 20)}, elicit.ApprovedForSession, 1, []string{""}, 1, "was refused: it leads to"},
		{"nobody before the end", "on-request", approval.Rules{}, [][]string{reach(one, 1), {"echo", "next"}}, "", 1, []string{"", ""}, 1, "next"},
		{"many addresses", "on-request", approval.Rules{}, addresses, elicit.Approved, 0, []string{""}, 15, " and 5 more)"},
	}
	programs := map[string][3]string{ // a script, and what the model reads of it with the host and without
		"git": {"git clone -q https://one.example.com/repo/.git copy && git -C copy log --format=%s", "first", "403"},
		"go": {"GOPATH=$PWD GOCACHE=$PWD/c GOFLAGS=-modcacherw GOPROXY=https://one.example.com GONOSUMDB=* GOENV=off GOTOOLCHAIN=local go list -m -f {{.Time}} example.com/m@v1.0.0",
			"2001-02-03", "codex-mcp" + no},
	}
	if *whole { // these are not installed for tests
		maps.Copy(programs, map[string][3]string{
			"curl":             {"curl -sS https://one.example.com/three", `"latest`, "403"},
			"wget":             {"wget -O- --ca-certificate=$SSL_CERT_FILE https://one.example.com/three", `"latest`, "codex-mcp" + no},
			"python3":          {`python3 -c 'import urllib.request as u; print(u.urlopen("https://one.example.com/three").read())'`, `"latest`, "codex-mcp" + no},
			"python3 requests": {`python3 -c 'import pip._vendor.requests as r; print(r.get("https://one.example.com/three", verify="'$SSL_CERT_FILE'").text)'`, `"latest`, "codex-mcp" + no},
			"pip":              {"pip --isolated index versions three --cert $SSL_CERT_FILE -i https://one.example.com/simple", "1.0.0", "codex-mcp" + no},
		})
		cargo, _ := exec.CommandContext(t.Context(), "rustup", "which", "cargo").Output() // that of rustup itself looks into HOME
		programs["cargo"] = [3]string{"export CARGO_HOME=$PWD/c CARGO_HTTP_CAINFO=$SSL_CERT_FILE PATH=" + filepath.Dir(string(cargo)) + `:$PATH; mkdir src && >src/lib.rs &&
printf '[package]\nname="a"\nversion="0.1.0"\n[dependencies]\nthree={version="1",registry-index="sparse+https://one.example.com/crates/"}\n' >Cargo.toml && cargo generate-lockfile && cat Cargo.lock`,
			"checksum = ", "403"}
		if npm := os.Getenv("CODEX_NPM"); npm != "" { // of .ci/run, with a Node that knows proxies
			programs["node"] = [3]string{npm + `/typescript/node_modules/.bin/node -e 'fetch("https://one.example.com/three").then(r => r.text()).then(console.log)'`, `"latest`, "fetch failed"}
		}
	}
	for program, is := range programs {
		rows = append(rows,
			row{program, "on-request", approval.Rules{}, script(is[0]), elicit.Approved, 1, []string{one}, 0, is[1]},
			row{program + " declined", "on-request", approval.Rules{}, script(is[0]), elicit.Denied, 1, []string{""}, 1, is[2]})
	}
	for _, tt := range rows {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			program, _, _ := strings.Cut(tt.name, " ")
			if _, err := exec.LookPath(program); err != nil && (program == "npm" || programs[program] != [3]string{}) {
				t.Skip(err)
			}
			o := newOnline(t, world, tt.policy, tt.rules, tt.calls...)
			o.answer = tt.answer
			r, read := o.turn(t)
			must.Equal(t, "questions", tt.asked, len(o.questions))
			var used []string
			for _, end := range o.kept(t, record.Ends) {
				if end.Words == "" {
					used = append(used, strings.Join(end.Hosts, " "))
				}
			}
			must.Equal(t, "used", tt.used, used)
			must.Equal(t, "refused", tt.refused, len(r.Refused))
			for _, one := range r.Refused {
				must.Equal(t, "kind", "host", one.Kind)
				must.Equal(t, "in a line", true, strings.HasPrefix(one.String(), "not reached: "+one.What))
			}
			if !strings.Contains(read, tt.read) || strings.Count(read, "(Network: ") > tt.refused {
				t.Errorf("the model read %s", read[max(0, len(read)-3000):])
			}
			must.Equal(t, "status", map[bool]protocol.TurnStatus{true: protocol.StatusAborted, false: protocol.StatusCompleted}[tt.answer == elicit.Abort], r.Status)
			if strings.HasPrefix(tt.name, "npm") {
				o.installed(t, tt.read == added)
			}
		})
	}
}

// TestHostOfCheck declines a host for a check: if the check fails then, that says nothing about the work.
func TestHostOfCheck(t *testing.T) {
	for code, want := range map[int]string{0: "completed true ", 7: "incomplete false Network: one.example.com was refused: declined"} {
		o := newOnline(t, http.NotFoundHandler(), protocol.ApprovalOnRequest, approval.Rules{})
		o.answer = elicit.Denied
		o.arguments["check"] = fmt.Sprintf("%s; exit %d", reach("one.example.com", 20)[4], code)
		r, _ := o.turn(t)
		must.Equal(t, fmt.Sprint(code), want, fmt.Sprint(r.Status, " ", r.Check.Passed != nil && *r.Check.Passed, " ", r.Check.Why))
	}
}

// installed checks what an installation by npm has asked, and where it has written.
func (o *online) installed(t *testing.T, works bool) {
	t.Helper()
	work := filepath.Join(o.dir, "work")
	for _, q := range o.questions {
		if want := "Allow the network, to the host `registry.example.com`?\nIt is asked for by `npm install --no-audit --no-fund one three` in `" + work + "`, which runs in the sandbox.\nWhat this command can read it can send there.\n"; !strings.HasPrefix(q, want) {
			t.Errorf("asked %s", q)
		}
	}
	for _, name := range []string{"one", "two", "three"} {
		_, err := os.Stat(filepath.Join(work, "node_modules", name, "package.json"))
		must.Equal(t, name+" is there", works, err == nil)
	}
	why, _ := os.ReadFile(filepath.Join(work, "why"))
	must.Equal(t, "the script could not write outside", works, string(why) == "EACCES")
	must.Equal(t, "files in the home", 3, len(must.Get(os.ReadDir(o.dir))(t)))
	if d := o.kept(t, record.Decided); len(d) != 1 || d[0].Kind != approval.KindHost || d[0].Hostname != "registry.example.com" || d[0].Call != "c0" || d[0].Command[0] != "npm" {
		t.Errorf("decided %+v", d)
	}
}

// TestNoHostsElsewhere prints the environment of commands that have no network by the host, and of one that has it. TestHosts of
// package box has what the sandbox knows of that.
func TestNoHostsElsewhere(t *testing.T) {
	const full = protocol.SandboxDangerFullAccess
	sort := approval.Rules{Allow: []approval.Rule{{Command: []string{"sort"}}}} // in the sandbox
	for _, tt := range []struct {
		name, program string // cat is known to be safe
		policy        protocol.ApprovalPolicy
		sandbox       protocol.SandboxMode
		want          bool
	}{
		{"workspace-write", "cat", "on-request", protocol.SandboxWorkspaceWrite, true},
		{"off", "cat", "on-request", protocol.SandboxWorkspaceWrite, false},
		{"full access", "cat", "on-request", full, false},
		{"full access, with a rule", "sort", "untrusted", full, false},
		{"untrusted, and known to be safe", "cat", "untrusted", protocol.SandboxWorkspaceWrite, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOnline(t, http.NotFoundHandler(), tt.policy, sort, []string{tt.program, "/proc/self/environ"})
			if tt.name == "off" {
				native.SetHosts(o.engine, nil)
			}
			o.answer, o.arguments["sandbox"] = elicit.Approved, tt.sandbox
			_, read := o.turn(t)
			must.Equal(t, "the proxy", tt.want, strings.Contains(read, "HTTPS_PROXY=http://127.0.0.1:3128"))
			must.Equal(t, "it ran", true, strings.Contains(read, "LC_ALL=C"))
			must.Equal(t, "the model is told", tt.name != "off", strings.Contains(string(o.provider.Requests()[0].Body), "if the user allows each of them"))
		})
	}
}
