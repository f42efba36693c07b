package native_test

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// secret is the content of what a profile denies. No request may have it.
const secret = "canary-0c9e"

// secretImage is an image that has it.
const secretImage = "\x89PNG\r\n\x1a\n" + secret

// withheldCalls are calls that read what is denied.
var withheldCalls = []providertest.ToolCall{
	providertest.Tool("read", "read", map[string]any{"path": ".env"}),
	providertest.Tool("read a link", "read", map[string]any{"path": "to-env"}),
	providertest.Tool("read below", "read", map[string]any{"path": "sub/private/a.txt"}),
	providertest.Tool("list", "list", map[string]any{"path": "sub/private"}),
	providertest.Tool("search", "search", map[string]any{"pattern": "canary"}),
	providertest.Tool("search there", "search", map[string]any{"pattern": "canary", "path": "sub/private"}),
	providertest.Tool("search it", "search", map[string]any{"pattern": "canary", "path": ".env"}),
	providertest.Tool("edit", "edit", map[string]any{"path": ".env", "old": "nothing like it", "new": "x"}),
	providertest.Tool("write", "write", map[string]any{"path": ".env", "content": "x\n"}),
	providertest.Tool("write a new one", "write", map[string]any{"path": "sub/.env", "content": "x\n"}),
	providertest.Tool("view", "view_image", map[string]any{"path": "sub/private/p.png"}),
	providertest.Shell("update", "apply_patch", "*** Begin Patch\n*** Update File: .env\n@@\n-nothing like it\n+x\n*** End Patch\n"),
	providertest.Shell("delete", "apply_patch", "*** Begin Patch\n*** Delete File: .env\n*** End Patch\n"),
	providertest.Shell("move", "apply_patch", "*** Begin Patch\n*** Update File: .env\n*** Move to: x\n*** End Patch\n"),
	providertest.Shell("cat", "cat", ".env"),
	providertest.Shell("cat more", "sh", "-c", "cat .env sub/private/* to-env; cp .env x; cat x"),
	{ID: "escalated", Name: "shell", Arguments: `{"command":["sh","-c","cat .env sub/private/*"],"with_escalated_permissions":true}`},
	providertest.Shell("another name", "cat", "open.txt"), // the control
}

// TestPermissions keeps what a profile denies from each tool, from commands in the sandbox and beyond it, and from what the
// server itself sends.
func TestPermissions(t *testing.T) {
	boxtest.NeedRooms(t)
	const denied = `"**/.env" = "deny", "sub/private" = "deny"`
	for name, tt := range map[string]struct {
		config string
		deny   []string
	}{
		"a profile": {config: "default_permissions = \"p\"\n---\n[permissions.p]\nextends = \":workspace\"\n" +
			"[permissions.p.filesystem]\n\":workspace_roots\" = { " + denied + " }\n"},
		"a closed profile": {config: "default_permissions = \"p\"\n---\n[permissions.p.filesystem]\n\":minimal\" = \"read\"\n" +
			"\":workspace_roots\" = { \".\" = \"write\", " + denied + " }\n"},
		"a key of ours":           {deny: []string{"**/.env", "sub/private"}},
		"and a mode that asks":    {config: "sandbox_mode = \"workspace-write\"\n", deny: []string{"**/.env", "sub/private"}},
		"and a mode that reads":   {config: "sandbox_mode = \"read-only\"\n", deny: []string{"**/.env", "sub/private"}},
		"the control: no profile": {},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, "", native.Limits{})
			top, tables, _ := strings.Cut(tt.config, "---\n")
			if strings.Contains(top, "sandbox_mode") {
				change(t, filepath.Join(b.home, "config.toml"), "sandbox_mode = \"danger-full-access\"\n", "")
			}
			file := filepath.Join(b.home, "config.toml")
			write(t, file, top+read(t, file)+tables)
			b.engine = open(t, native.Options{
				CodexHome: b.home, Sandbox: setting.Sandbox{DenyRead: tt.deny}, Tools: setting.ToolsFiles,
				Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.home},
			})
			boxtest.Lay(t, b.cwd, ".env="+secret, "sub/private/a.txt="+secret, "sub/private/p.png="+secretImage, "to-env -> .env", "AGENTS.md -> .env",
				"open.txt=open", "sub/x.txt=x")
			h := &host{exec: allow}
			c := b.start(t, h, protocol.Config{ApprovalPolicy: protocol.ApprovalOnRequest})
			for _, call := range withheldCalls {
				b.provider.Add(providertest.Call(call))
			}
			b.provider.Add(providertest.Say("done"))
			turn(t, c, say("read all"))
			sent, outputs := 0, ""
			for _, r := range b.provider.Requests() {
				if strings.Contains(string(r.Body), secret) || strings.Contains(string(r.Body), base64.StdEncoding.EncodeToString([]byte(secretImage))) {
					sent++
				}
				outputs += r.LastToolOutput() + "\n"
			}
			if withheld := !strings.HasPrefix(name, "the control"); (sent == 0) != withheld {
				t.Errorf("%d requests have what is denied\n%s", sent, outputs)
			}
			if !strings.Contains(outputs, "open") {
				t.Errorf("what is not denied is not read\n%s", outputs)
			}
			if !strings.HasPrefix(name, "the control") {
				must.Equal(t, "the file", secret, read(t, filepath.Join(b.cwd, ".env")))
			}
		})
	}
}

// TestPermittedHosts has commands reach the hosts that a profile names, without a question, and no others.
func TestPermittedHosts(t *testing.T) {
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("served")) })
	calls := [][]string{}
	for _, host := range []string{"one", "bad.one", "two"} {
		calls = append(calls, []string{"curl", "-sS", "-m", "20", "--cacert", "ca.pem", "https://" + host + ".example.com/"})
	}
	o := newOnline(t, served, protocol.ApprovalOnRequest, approval.Rules{}, calls...)
	file := filepath.Join(o.home, "config.toml")
	write(t, file, "default_permissions = \"p\"\n"+read(t, file)+`
[permissions.p]
extends = ":workspace"
[permissions.p.network]
enabled = true
[permissions.p.network.domains]
"**.one.example.com" = "allow"
"bad.one.example.com" = "deny"
`)
	must.OK(t, os.Rename(o.dir+"/ca.pem", o.dir+"/work/ca.pem"))
	delete(o.arguments, "sandbox")
	o.answer = elicit.Approved
	result, said := o.turn(t)
	must.Equal(t, "questions", 0, len(o.questions))
	must.Equal(t, "answers of the server", 1, strings.Count(said, "served"))
	if strings.Count(said, "denied by the profile of permissions in config.toml") < 2 {
		t.Errorf("%s\n%v", said, result.Refused)
	}
}

// TestUnkeptProfiles has configurations that cannot be kept. Each ends the start with its key.
func TestUnkeptProfiles(t *testing.T) {
	const own = "default_permissions = \"p\"\n[permissions.p]\nextends = \":workspace\"\n"
	for config, want := range map[string]string{
		own + "[permissions.p.filesystem]\n\":cwd\" = \"deny\"":                `permissions.p.filesystem.:cwd: ":cwd" is not known here`,
		own + "[permissions.p.filesystem]\n\"secrets\" = \"deny\"":             `permissions.p.filesystem.secrets: "secrets" is no absolute path`,
		own + "[permissions.p.filesystem]\n\"/a/*\" = \"read\"":                `permissions.p.filesystem./a/*: a pattern can only deny`,
		own + "[permissions.p.filesystem]\n\"/a\" = \"execute\"":               `permissions.p.filesystem./a: want "read", "write" or "deny"`,
		own + "[permissions.p.filesystem]\n\":tmpdir\" = { \"x\" = \"deny\" }": `:tmpdir takes no paths below it`,
		own + "[permissions.p.filesystem]\nglob_scan_max_depth = 0":            `permissions.p.filesystem.glob_scan_max_depth: want 1 or more`,
		own + "[permissions.p.network]\nenabled = true\nmode = \"limited\"":    `permissions.p.network.mode: cannot be kept here`,
		own + "[permissions.p.network.unix_sockets]\n\"/run/x\" = \"allow\"":   `permissions.p.network.unix_sockets: cannot be kept here`,
		own + "[permissions.p.network.domains]\n\"example.com\" = \"ask\"":     `permissions.p.network.domains."example.com": want "allow" or "deny"`,
		own + "writable = true":                                                           `permissions.p.writable: is no key of a profile`,
		own + "[permissions.\":mine\"]":                                                   `permissions.:mine: the names with a colon are those of built-in profiles`,
		"default_permissions = \"q\"":                                                     `default_permissions: there is no profile "q"`,
		"default_permissions = \":everything\"":                                           `default_permissions: ":everything" is no built-in profile`,
		"[permissions.p.filesystem]\n\"/a\" = \"deny\"":                                   `default_permissions: is missing`,
		"default_permissions = \"p\"\n[permissions.p]\nextends = \"p\"":                   `permissions.p.extends: "p" extends itself`,
		"default_permissions = \"p\"\n[permissions.p]\nextends = \":danger-full-access\"": `permissions.p.extends: :danger-full-access cannot be extended`,
	} {
		home := t.TempDir()
		write(t, filepath.Join(home, "config.toml"), config)
		_, err := native.New(&native.Options{CodexHome: home})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v", config, err)
		}
	}
	for deny, want := range map[string]string{"../x": "leads out of the working folder", "~x": "is no absolute path", "a/[": "is not a pattern"} {
		_, err := native.New(&native.Options{CodexHome: t.TempDir(), Sandbox: setting.Sandbox{DenyRead: []string{deny}}})
		if err == nil || !strings.Contains(err.Error(), "sandbox.deny_read: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", deny, err)
		}
	}
	helper := native.Options{CodexHome: t.TempDir(), Sandbox: setting.Sandbox{DenyRead: []string{"x"}, Helper: []string{"true"}}}
	if _, err := native.New(&helper); err == nil || !strings.Contains(err.Error(), "sandbox.deny_read cannot be kept on this system: sandbox.helper") {
		t.Errorf("with a helper: %v", err)
	}
}

// TestChosenPermissions has calls, flags and layers choose. A call gets no more than the profile of the configuration.
func TestChosenPermissions(t *testing.T) {
	boxtest.NeedRooms(t)
	const profile = "default_permissions = \"p\"\n"
	const table = "\n[permissions.p]\nextends = \":workspace\"\n[permissions.p.filesystem]\n\":workspace_roots\" = { \".env\" = \"deny\" }\n"
	for _, tt := range []struct {
		name, config string
		flags        map[string]any
		call         protocol.Config
		read         bool // what the profile denies
		want         string
	}{
		{name: "the profile", config: profile + table},
		{name: "beside a mode in the same file", config: profile + "sandbox_mode = \"danger-full-access\"\n" + table},
		{name: "a mode above it", config: profile + table, flags: map[string]any{"sandbox_mode": "read-only"}, read: true},
		{name: "above a mode", config: "sandbox_mode = \"read-only\"\n" + table, flags: map[string]any{"default_permissions": "p"}},
		{name: "a call for less", config: profile + table, call: protocol.Config{Sandbox: protocol.SandboxReadOnly}},
		{name: "a call for the same", config: profile + table, call: protocol.Config{Sandbox: protocol.SandboxWorkspaceWrite}},
		{name: "a call for more", config: profile + table, call: protocol.Config{Sandbox: protocol.SandboxDangerFullAccess},
			want: `sandbox_mode: "danger-full-access" is more than the profile "p" of default_permissions allows`},
		{name: "a call for folders", config: profile + table, call: protocol.Config{Overrides: protocol.Overrides{
			"sandbox_workspace_write": map[string]any{"network_access": true},
		}}, want: `sandbox_workspace_write: the profile "p" of default_permissions decides`},
		{name: "a call for another profile", config: profile + table, call: protocol.Config{Overrides: protocol.Overrides{
			"default_permissions": ":workspace",
		}}, want: "default_permissions: the configuration's own decides"},
		{name: "a call for another profile, where a mode counts", config: "sandbox_mode = \"read-only\"\n" + table,
			call: protocol.Config{Overrides: protocol.Overrides{"default_permissions": "p"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, "", native.Limits{})
			file := filepath.Join(b.home, "config.toml")
			change(t, file, "sandbox_mode = \"danger-full-access\"\n", "")
			top, tables, _ := strings.Cut(tt.config, "\n[")
			write(t, file, top+"\n"+read(t, file)+"\n["+tables)
			b.engine = open(t, native.Options{CodexHome: b.home, Overrides: tt.flags, Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.home}})
			boxtest.Lay(t, b.cwd, ".env="+secret)
			b.provider.Add(providertest.Call(providertest.Shell("c", "cat", ".env")), providertest.Say("done"))
			tt.call.Cwd = b.cwd
			c, err := b.engine.Start(t.Context(), tt.call, &host{})
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v", err)
				}
				return
			}
			must.OK(t, err)
			turn(t, c, say("read it"))
			closed(t, c)
			must.Equal(t, "it is read", tt.read, strings.Contains(string(b.provider.Requests()[1].Body), secret))
		})
	}
}

// TestReportedPermissions has the report say what commands may read, write and reach.
func TestReportedPermissions(t *testing.T) {
	boxtest.NeedRooms(t)
	b := setup(t, "", native.Limits{})
	file := filepath.Join(b.home, "config.toml")
	change(t, file, "sandbox_mode = \"danger-full-access\"\n", "")
	plain := read(t, file)
	t.Chdir(b.cwd)
	t.Setenv("HOME", "/zhome/a") // the paths are sorted: behind the folders of any test
	report := func(deny ...string) []string {
		t.Helper()
		o := &native.Options{CodexHome: b.home, Sandbox: setting.Sandbox{DenyRead: deny}, Environ: []string{"HOME=/zhome/a"}}
		r := must.Get(native.Check(t.Context(), o, false))(t)
		all := []string{r.Reads, r.Writes, r.Reaches}
		for i, words := range all {
			all[i] = strings.ReplaceAll(words, b.cwd, "CWD")
		}
		return all
	}
	must.Equal(t, "without a profile", []string{"", "", ""}, report())
	must.Equal(t, "with a key of ours", []string{"all files; not CWD/**/.env, /zhome/a/.ssh", "", ""}, report("**/.env", "~/.ssh"))
	write(t, file, "default_permissions = \"p\"\n"+plain+"\n[permissions.p]\nextends = \":read-only\"\n[permissions.p.filesystem]\n"+
		"\":workspace_roots\" = { \".\" = \"write\", \"s\" = \"deny\", \".codex\" = \"write\", \".aws\" = \"deny\" }\n"+
		"[permissions.p.network]\nenabled = true\ndomains = { \"b.com\" = \"allow\", \"a.com\" = \"allow\", \"c.com\" = \"deny\" }\n")
	must.Equal(t, "with a profile", []string{
		"all files; not CWD/.aws, CWD/s", "what is in CWD, CWD/.codex; not CWD/.agents, CWD/.git", "a.com, b.com by HTTPS, and no other host",
	}, report())
	write(t, file, "default_permissions = \"p\"\n"+plain+"\n[permissions.p.filesystem]\n\"/usr\" = \"read\"\n")
	must.Equal(t, "with a closed one", []string{"what is in /usr, and nothing else", "nothing", "no network"}, report())
}
