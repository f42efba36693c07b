package native_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/internal/hosts/hoststest"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// online is a server with the native engine, in a world, and what came of a turn there.
type online struct {
	*hoststest.World
	provider *providertest.Server
	server   *codexserver.Server
	engine   *native.Engine
	home     string
	log      bytes.Buffer // the record

	mu        sync.Mutex
	questions []string
	answer    func(ctx context.Context, q *client.Question) elicit.Outcome
}

// newOnline begins a server, of which commands write in the world's folder.
func newOnline(t *testing.T, h http.Handler, policy protocol.ApprovalPolicy, rules approval.Rules, calls ...[]string) *online {
	t.Helper()
	o := &online{World: hoststest.New(t, h), home: t.TempDir()}
	work := filepath.Join(o.Dir, "work")
	must.OK(t, os.Mkdir(work, 0o700), os.Mkdir(filepath.Join(o.Dir, "cache"), 0o700))
	var turns []providertest.Turn
	for i, argv := range calls {
		turns = append(turns, providertest.Call(providertest.Shell(fmt.Sprintf("c%d", i), argv...)))
	}
	o.provider = providertest.New(append(turns, providertest.Say("done"))...)
	t.Cleanup(o.provider.Close)
	write(t, filepath.Join(o.home, "config.toml"), fmt.Sprintf(`model = "scripted"
model_provider = "test"
approval_policy = %q
sandbox_mode = "workspace-write"
[sandbox_workspace_write]
writable_roots = [%q]
exclude_slash_tmp = true
exclude_tmpdir_env_var = true
[model_providers.test]
base_url = %q
`, policy, filepath.Join(o.Dir, "cache"), o.provider.BaseURL()))
	o.engine = open(t, native.Options{CodexHome: o.home, Hosts: true, Environ: append([]string{"PATH=" + os.Getenv("PATH")}, o.Environ()...)})
	native.SetHosts(o.engine, &o.Proxy)
	o.server = codexserver.New(o.engine, &codexserver.Options{
		Record: &o.log, Rules: rules, Home: o.home, Folder: work, Approvals: elicit.Options{Schema: elicit.FormDecision}, Changes: codexserver.ChangeOptions{Read: new(false)},
	})
	return o
}

// turn runs a turn, and returns its result and what the model read of its last command.
func (o *online) turn(t *testing.T) (client.Result, string) {
	t.Helper()
	c := must.Get(client.Start(t.Context(), &client.Options{Server: o.server, Ask: func(ctx context.Context, q *client.Question) elicit.Outcome {
		o.mu.Lock()
		o.questions = append(o.questions, q.Message)
		o.mu.Unlock()
		return o.answer(ctx, q)
	}}))(t)
	r := must.Get(c.Run(t.Context(), client.Task{Prompt: "go"}))(t)
	must.OK(t, c.Close())
	all := o.provider.Requests()
	return r, string(all[len(all)-1].Body)
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

func answers(d elicit.Decision) func(context.Context, *client.Question) elicit.Outcome {
	return func(context.Context, *client.Question) elicit.Outcome { return elicit.Outcome{Decision: d} }
}

// TestNPM installs three packages, of which one has a script that tries to write outside and to reach another host.
func TestNPM(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip(err)
	}
	script := `node -e "try { require('fs').writeFileSync(process.env.HOME + '/evil', 'x') } catch (e) { require('fs').writeFileSync(process.env.INIT_CWD + '/why', e.code) }"`
	registry := hoststest.Registry(t, map[string]map[string]any{
		"one": {"dependencies": map[string]any{"two": "^1.0.0"}}, "two": {}, "three": {"scripts": map[string]any{"postinstall": script}},
	})
	npm := []string{"npm", "install", "--no-audit", "--no-fund", "one", "three"}
	allow := approval.Rules{Hosts: approval.HostRules{Allow: []string{"*.example.com"}}}
	for _, tt := range []struct {
		name   string
		policy protocol.ApprovalPolicy
		rules  approval.Rules
		answer elicit.Decision
		asked  int
		works  bool
		words  string // for the model
	}{
		{"accepted", protocol.ApprovalOnRequest, approval.Rules{}, elicit.Approved, 1, true, "added 3 packages"},
		{"a rule", protocol.ApprovalOnRequest, allow, elicit.Denied, 0, true, "added 3 packages"},
		{"a rule under never", protocol.ApprovalNever, allow, elicit.Denied, 0, true, "added 3 packages"},
		{"declined", protocol.ApprovalOnRequest, approval.Rules{}, elicit.Denied, 1, false, `(Network: registry.example.com was refused: declined`},
		{"declined after a failure", protocol.ApprovalOnFailure, approval.Rules{}, elicit.Denied, 1, false, `(Network: registry.example.com was refused: declined`},
		{"never", protocol.ApprovalNever, approval.Rules{}, elicit.Approved, 0, false, "(Network: registry.example.com was refused: declined: the approval policy is never to ask, so only a rule such as {host = "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := newOnline(t, registry, tt.policy, tt.rules, npm)
			o.answer = answers(tt.answer)
			r, read := o.turn(t)
			must.Equal(t, "questions", tt.asked, len(o.questions))
			for _, q := range o.questions {
				work := filepath.Join(o.Dir, "work")
				if want := "Allow the network, to the host `registry.example.com`?\nIt is asked for by `npm install --no-audit --no-fund one three` in `" + work + "`, which runs in the sandbox.\nWhat this command can read it can send there.\n"; !strings.HasPrefix(q, want) {
					t.Errorf("asked %s", q)
				}
			}
			if !strings.Contains(strings.ReplaceAll(read, `\"`, `"`), tt.words) || strings.Count(read, "Network: ") > 1 {
				t.Errorf("the model read %s", read[max(0, len(read)-3000):])
			}
			for _, name := range []string{"one", "two", "three"} {
				_, err := os.Stat(filepath.Join(o.Dir, "work/node_modules", name, "package.json"))
				must.Equal(t, name+" is there", tt.works, err == nil)
			}
			why, _ := os.ReadFile(filepath.Join(o.Dir, "work/why"))
			must.Equal(t, "the script could not write outside", tt.works, string(why) == "EACCES")
			var top []string
			for _, e := range must.Get(os.ReadDir(o.Dir))(t) {
				top = append(top, e.Name())
			}
			must.Equal(t, "the home", []string{"ca.pem", "cache", "work"}, top)
			ends := o.kept(t, record.Ends)
			must.Equal(t, "commands", 1, len(ends))
			refused := []string{}
			for _, one := range r.Refused {
				refused = append(refused, one.Kind+" "+one.What)
			}
			if tt.works {
				must.Equal(t, "used", []string{"registry.example.com"}, ends[0].Hosts)
				must.Equal(t, "refused", []string{}, refused)
			} else {
				must.Equal(t, "used", 0, len(ends[0].Hosts))
				must.Equal(t, "refused", []string{"host registry.example.com"}, refused)
				must.Equal(t, "resolved", 0, len(o.Resolved()))
			}
			decided := o.kept(t, record.Decided)
			if len(decided) != 1 || decided[0].Kind != record.KindHost || decided[0].Host != "registry.example.com" || decided[0].Call != "c0" || !slices.Equal(decided[0].Command, npm) {
				t.Errorf("decided %+v", decided)
			}
		})
	}
}

// reach is a command that asks for a host, waits at most a number of seconds, and prints the first line of the answer.
func reach(host string, seconds int) []string {
	return []string{"timeout", fmt.Sprint(seconds), "bash", "-c", `exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT ` + host + `:443 HTTP/1.1\r\n\r\n' >&3; read -r line <&3; echo "got $line"`}
}

// TestHostAnswers has answers to questions about hosts, and says for what they count.
func TestHostAnswers(t *testing.T) {
	const one, two = "one.example.com", "two.example.com"
	for _, tt := range []struct {
		name    string
		calls   [][]string
		answer  elicit.Decision
		asked   int
		used    []string // hosts by each command, with spaces between
		refused int
		status  protocol.TurnStatus
	}{
		{"once", [][]string{reach(one, 20), reach(one, 20)}, elicit.Approved, 2, []string{one, one}, 0, protocol.StatusCompleted},
		{"for the session", [][]string{reach(one, 20), reach(one, 20), reach(two, 20)}, elicit.ApprovedForSession, 2, []string{one, one, two}, 0, protocol.StatusCompleted},
		{"always", [][]string{reach(one, 20), reach(one, 20)}, elicit.ApprovedAlways, 1, []string{one, one}, 0, protocol.StatusCompleted},
		{"no", [][]string{reach(one, 20), reach(one, 20)}, elicit.Denied, 2, []string{"", ""}, 2, protocol.StatusCompleted},
		{"cancel", [][]string{reach(one, 20), reach(two, 20)}, elicit.Abort, 1, nil, 1, protocol.StatusAborted},
		{"a private address", [][]string{reach("inside.example.com", 20)}, elicit.ApprovedForSession, 1, []string{""}, 1, protocol.StatusCompleted},
		{"nobody before the end", [][]string{reach(one, 1), {"echo", "next"}}, "", 1, []string{"", ""}, 1, protocol.StatusCompleted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := newOnline(t, http.NotFoundHandler(), protocol.ApprovalOnRequest, approval.Rules{}, tt.calls...)
			o.answer = func(ctx context.Context, _ *client.Question) elicit.Outcome {
				if tt.answer == "" {
					<-ctx.Done()
				}
				return elicit.Outcome{Decision: tt.answer}
			}
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
			}
			must.Equal(t, "status", tt.status, r.Status)
			if works := tt.answer.Approves() && tt.refused == 0; works != strings.Contains(read, "got HTTP/1.1 200") {
				t.Errorf("the model read %s", read[max(0, len(read)-2000):])
			}
		})
	}
}

// TestNoHostsElsewhere prints the environment of commands that have no network by the host, and of one that has it.
func TestNoHostsElsewhere(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*online)
		config protocol.Config
		want   bool
	}{
		"workspace-write":             {func(*online) {}, protocol.Config{}, true},
		"off":                         {func(o *online) { native.SetHosts(o.engine, nil) }, protocol.Config{}, false},
		"read-only":                   {func(*online) {}, protocol.Config{Sandbox: protocol.SandboxReadOnly}, false},
		"full access":                 {func(*online) {}, protocol.Config{Sandbox: protocol.SandboxDangerFullAccess}, false},
		"network access":              {func(*online) {}, protocol.Config{Overrides: rawConfig("sandbox_workspace_write.network_access", "true")}, false},
		"untrusted, known to be safe": {func(*online) {}, protocol.Config{ApprovalPolicy: protocol.ApprovalUntrusted}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOnline(t, http.NotFoundHandler(), protocol.ApprovalOnRequest, approval.Rules{}, []string{"cat", "/proc/self/environ"})
			tt.change(o)
			tt.config.Cwd = filepath.Join(o.Dir, "work")
			c := must.Get(o.engine.Start(t.Context(), tt.config, &host{}))(t)
			defer closed(t, c)
			turn(t, c, say("go"))
			all := o.provider.Requests()
			must.Equal(t, "the proxy", tt.want, strings.Contains(string(all[len(all)-1].Body), "HTTPS_PROXY=http://127.0.0.1:3128"))
		})
	}
}

// TestHostNotes asks for many names that are none. The model reads about some of them.
func TestHostNotes(t *testing.T) {
	script := `for i in $(seq 15); do exec 3<>/dev/tcp/127.0.0.1/3128; printf "CONNECT 10.0.0.$i:443 HTTP/1.1\r\n\r\n" >&3; read -r line <&3; exec 3>&-; done`
	o := newOnline(t, http.NotFoundHandler(), protocol.ApprovalOnRequest, approval.Rules{}, []string{"bash", "-c", script})
	r, read := o.turn(t)
	must.Equal(t, "notes", 11, strings.Count(read, "(Network: "))
	must.Equal(t, "the last", true, strings.Contains(read, "(Network: 5 more hosts were refused)"))
	must.Equal(t, "questions", 0, len(o.questions))
	must.Equal(t, "refused", `host "10.0.0.1" want a name, and no address`, r.Refused[0].Kind+" "+r.Refused[0].What+" "+r.Refused[0].Why)
}
