package interop

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A host is a program whose model calls the tools of codex-mcp, or a library for such
// programs.
type host struct {
	name string
	pkg  string // of npm
	// program is installed and run by .ci/run hosts. The libraries are small, and the gate
	// runs them too.
	program bool
	// setting raises the time after which the host gives up a call. It is "" for a host that
	// waits longer than the test, or has none.
	setting string
	// start returns the command that gives the prompt to the model, and ends after its
	// answer, with its variables.
	start func(t *testing.T, s hostSetup) (argv []string, env map[string]string)
}

var hosts = []host{
	{"Copilot CLI", "@github/copilot-linux-x64", true, "", startCopilot},
	{"Gemini CLI", "@google/gemini-cli", true, "", startGemini},
	{"opencode", "opencode-linux-x64", true, "", startOpencode},
	{"Cline", "@cline/cli-linux-x64", true, "`timeout: 3600`", startCline},
	{"Continue", "@continuedev/cli", true, "", startContinue},
	{"AI SDK", "@ai-sdk/mcp", false, "", startAI},
	{"OpenAI Agents SDK", "@openai/agents", false, "`timeout: 3600000`", startAgents},
}

// folder is where the gate installs the host.
func (h host) folder() string {
	if h.program {
		return filepath.Join("hosts", "programs")
	}
	return "hosts"
}

// hostSetup is what a host needs.
type hostSetup struct {
	setup
	// Patient raises the host's limit of a call to an hour.
	Patient bool `json:"patient"`

	pkg            string // the folder of its package
	openai, gemini string // the addresses of its model
	home           string // the folder for its files
	prompt         string
}

// command returns the host's command. Of the caller's variables only PATH reaches it, its
// homes are in the folder of the test, and it finds nothing outside of this machine.
func (h host) command(ctx context.Context, t *testing.T, s hostSetup) *exec.Cmd {
	argv, more := h.start(t, s)
	env := map[string]string{
		"PATH": filepath.Dir(node()) + ":" + os.Getenv("PATH"), "HOME": s.home, "TMPDIR": filepath.Join(s.home, "tmp"), nodeCache: os.Getenv(nodeCache),
		"XDG_CONFIG_HOME": filepath.Join(s.home, "config"), "XDG_DATA_HOME": filepath.Join(s.home, "data"),
		"XDG_CACHE_HOME": filepath.Join(s.home, "cache"), "XDG_STATE_HOME": filepath.Join(s.home, "state"),
		"TERM": "dumb", "NO_COLOR": "1", "LANG": "C.UTF-8", "CI": "true", "DO_NOT_TRACK": "1", "NO_UPDATE_NOTIFIER": "1",
		"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost", // nobody listens on 9
	}
	maps.Copy(env, more)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.Cwd, setup{Env: env}.environment(), 5*time.Second
	return cmd
}

// keep writes a file of the host's as JSON.
func (s hostSetup) keep(t *testing.T, v any, elem ...string) (path string) {
	t.Helper()
	path = filepath.Join(append([]string{s.home}, elem...)...)
	text, err := json.Marshal(v)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

type object = map[string]any

// servers is the table mcpServers that many hosts read.
func (s hostSetup) servers(more object) object {
	entry := object{"command": s.Command[0], "args": s.Command[1:], "env": s.Env}
	maps.Copy(entry, more)
	return object{"mcpServers": object{"codex": entry}}
}

func startCopilot(t *testing.T, s hostSetup) ([]string, map[string]string) {
	config := s.keep(t, s.servers(object{"type": "local", "tools": []string{"*"}}), "mcp.json")
	return []string{filepath.Join(s.pkg, "copilot"), "-p", s.prompt, "--allow-all-tools", "--additional-mcp-config", "@" + config}, map[string]string{
		"COPILOT_HOME": filepath.Join(s.home, "copilot"), "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false",
		"COPILOT_PROVIDER_BASE_URL": s.openai, "COPILOT_PROVIDER_API_KEY": "none", "COPILOT_MODEL": "mock-model",
	}
}

func startGemini(t *testing.T, s hostSetup) ([]string, map[string]string) {
	settings := s.servers(object{"trust": true})
	settings["security"] = object{"auth": object{"selectedType": "gemini-api-key"}}
	settings["privacy"] = object{"usageStatisticsEnabled": false}
	settings["general"] = object{"enableAutoUpdate": false}
	s.keep(t, settings, ".gemini", "settings.json")
	return []string{node(), filepath.Join(s.pkg, "bundle", "gemini.js"), "--skip-trust", "--approval-mode", "yolo", "-m", "gemini-2.5-flash", "-p", s.prompt}, map[string]string{
		"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": s.gemini, "GEMINI_CLI_NO_RELAUNCH": "true",
	}
}

func startOpencode(t *testing.T, s hostSetup) ([]string, map[string]string) {
	config := s.keep(t, object{
		"autoupdate": false, "share": "disabled", "model": "mock/mock-model", "small_model": "mock/mock-model", "permission": "allow",
		"provider": object{"mock": object{
			"npm": "@ai-sdk/openai-compatible", "options": object{"baseURL": s.openai, "apiKey": "none"},
			"models": object{"mock-model": object{"tool_call": true, "limit": object{"context": 400000, "output": 10000}}},
		}},
		"mcp": object{"codex": object{"type": "local", "command": s.Command, "environment": s.Env}},
	}, "opencode.json")
	return []string{filepath.Join(s.pkg, "bin", "opencode"), "run", "-m", "mock/mock-model", s.prompt}, map[string]string{
		"OPENCODE_CONFIG": config, "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
		"OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1", "OPENCODE_DISABLE_SHARE": "1",
	}
}

func startCline(t *testing.T, s hostSetup) ([]string, map[string]string) {
	const provider = "openai-compatible"
	s.keep(t, object{"version": 1, "lastUsedProvider": provider, "modes": object{}, "providers": object{provider: object{
		"settings":  object{"provider": provider, "apiKey": "none", "model": "mock-model", "baseUrl": s.openai},
		"updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual",
	}}}, "cline", "settings", "providers.json")
	s.keep(t, object{"telemetryOptOut": true, "autoUpdateEnabled": false}, "cline", "settings", "global-settings.json")
	entry := object{}
	if s.Patient {
		entry["timeout"] = 3600
	}
	s.keep(t, s.servers(entry), "cline", "settings", "cline_mcp_settings.json")
	return []string{filepath.Join(s.pkg, "bin", "cline"), "--data-dir", filepath.Join(s.home, "cline"), "-P", provider, "-m", "mock-model", s.prompt}, map[string]string{
		"CLINE_NO_INTERACTIVE": "1", "CLINE_NO_AUTO_UPDATE": "1",
	}
}

func startContinue(t *testing.T, s hostSetup) ([]string, map[string]string) {
	config := s.keep(t, object{
		"name": "interop", "version": "1.0.0", "schema": "v1",
		"models": []object{{
			"name": "mock", "provider": "openai", "model": "mock-model", "apiBase": s.openai, "apiKey": "none",
			"roles": []string{"chat"}, "capabilities": []string{"tool_use"},
		}},
		"mcpServers": []object{{"name": "codex", "command": s.Command[0], "args": s.Command[1:], "env": s.Env}},
	}, "config.yaml") // JSON is YAML
	return []string{node(), filepath.Join(s.pkg, "dist", "cn.js"), "--config", config, "--auto", "-p", s.prompt}, map[string]string{
		"CONTINUE_GLOBAL_DIR": filepath.Join(s.home, "continue"), "CONTINUE_CLI_ENABLE_TELEMETRY": "0", "CONTINUE_METRICS_ENABLED": "0",
	}
}

func startAI(t *testing.T, s hostSetup) ([]string, map[string]string) { return s.sdk(t, "ai"), nil }

func startAgents(t *testing.T, s hostSetup) ([]string, map[string]string) {
	return s.sdk(t, "agents"), nil
}

// sdk returns the command of a small program with a library.
func (s hostSetup) sdk(t *testing.T, name string) []string {
	t.Helper()
	encoded, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Abs(filepath.Join("hosts", "sdk.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	return []string{node(), program, name, s.openai, string(encoded), s.prompt}
}
