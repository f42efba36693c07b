package appserver

import (
	stdjson "encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
)

const environmentPrefix = config.ShellEnvironmentKey + "."

// environment returns the environment of the app-server: that of this process, with
// Codex's folder. It leaves out keys of other programs, such as the client that started
// the server, unless the configuration names them.
func (e *Engine) environment() []string {
	env := os.Environ()
	if home := e.options.CodexHome; home != "" {
		env = append(env, "CODEX_HOME="+home)
	}
	text := e.configurationText()
	return slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return run.MatchName(run.ClientSecrets(), name) && !strings.Contains(text, name)
	})
}

// configurationText returns the text of the user's configuration of Codex. It skips a file
// that it cannot read.
func (e *Engine) configurationText() string {
	text := strings.Join(e.args, "\n")
	home, err := e.home()
	if err != nil {
		return text
	}
	files, err := os.ReadDir(home)
	if err != nil {
		return text
	}
	for _, file := range files {
		if filepath.Ext(file.Name()) != ".toml" || !file.Type().IsRegular() {
			continue
		}
		if b, err := safefile.Read(filepath.Join(home, file.Name()), maxConfig); err == nil {
			text += "\n" + string(b)
		}
	}
	return text
}

// maxConfig bounds a configuration file that is searched, in bytes.
const maxConfig = 4 << 20

// splitCall separates a call's keys of the shell environment from its other keys, which it
// returns flat. It drops a key that disables an unknown MCP server, because Codex would
// refuse the conversation.
func splitCall(keys, file map[string]stdjson.RawMessage) (rest, environment map[string]stdjson.RawMessage, err error) {
	rest, environment = map[string]stdjson.RawMessage{}, map[string]stdjson.RawMessage{}
	if err := flatten(rest, "", keys); err != nil {
		return nil, nil, configErrorf("config: %w", err)
	}
	servers := table(file["mcp_servers"])
	for key, value := range rest {
		if name, member, _ := splitServerKey(key); member == "enabled" && servers[name] == nil {
			delete(rest, key)
		}
		if name, ok := strings.CutPrefix(key, environmentPrefix); ok {
			environment[name] = value
			delete(rest, key)
		}
		if key == config.ShellEnvironmentKey { // not flattened, because a key in it has a dot
			maps.Copy(environment, table(value))
			delete(rest, key)
		}
	}
	return rest, environment, nil
}

// restrict hides variables from the conversation's commands: those that the configuration
// and the call exclude, and the keys of providers and MCP servers. File is the
// configuration without p. Commands of a client of another origin get what remains of its
// environment, and nothing of Codex's.
func (p *threadParams) restrict(from *engine.Origin, file, call map[string]stdjson.RawMessage) error {
	base, err := p.environment(file)
	if err != nil {
		return configErrorf("codex's configuration: %w", err)
	}
	said := make(map[string]any, len(call))
	for key, value := range call {
		var v any
		if err := json.Unmarshal(value, &v); err != nil {
			return configErrorf("config: %s%s: %w", environmentPrefix, key, err)
		}
		said[key] = v
	}
	narrowed, err := config.NarrowEnvironment(base, said)
	if err != nil {
		return configErrorf("config: %w", err)
	}
	exclude, ok := narrowed["exclude"].([]string)
	if !ok {
		exclude = base.Exclude
	}
	given, _ := credentials(file, p.Config)
	names := slices.Concat(run.Secrets(), exclude, given)
	slices.Sort(names)
	narrowed["exclude"] = slices.Compact(names)
	if from != nil {
		if narrowed, err = foreignEnvironment(base, narrowed, from.Environ); err != nil {
			return err
		}
	}
	keys := map[string]any{}
	for key, value := range narrowed {
		keys[environmentPrefix+key] = value
	}
	return p.set(keys)
}

// foreignEnvironment returns a policy with which commands get, of no environment but
// environ, what the policy base and the keys narrowed leave.
func foreignEnvironment(base config.ShellEnvironment, narrowed map[string]any, environ []string) (map[string]any, error) {
	raw, err := json.Marshal(narrowed)
	if err == nil {
		err = json.Unmarshal(raw, &base)
	}
	if err != nil {
		return nil, err
	}
	set := map[string]string{}
	for _, entry := range (run.EnvPolicy{
		Inherit: run.Inherit(base.Inherit), IgnoreDefaultExcludes: base.IgnoreDefaultExcludes,
		Exclude: base.Exclude, Set: base.Set, IncludeOnly: base.IncludeOnly,
	}).Environ(environ) {
		name, value, _ := strings.Cut(entry, "=")
		set[name] = value
	}
	return map[string]any{
		"inherit": "none", "ignore_default_excludes": true, "exclude": []string{}, "include_only": []string{},
		"set": set, "experimental_use_profile": base.UseProfile,
	}, nil
}

// environment returns the policy of the configuration, overridden by that of p.
func (p *threadParams) environment(file map[string]stdjson.RawMessage) (config.ShellEnvironment, error) {
	policy := maps.Clone(table(file[config.ShellEnvironmentKey]))
	if policy == nil {
		policy = map[string]stdjson.RawMessage{}
	}
	for key, value := range p.Config {
		if name, ok := strings.CutPrefix(key, environmentPrefix); ok {
			policy[name] = value
		}
	}
	var e config.ShellEnvironment
	raw, err := json.Marshal(policy)
	if err == nil {
		err = json.Unmarshal(raw, &e)
	}
	return e, err
}

// credentials returns the environment variables from which a configuration and the further keys of a
// conversation take keys for providers and MCP servers, and the keys that they have themselves: headers,
// queries and tokens.
func credentials(file, further map[string]stdjson.RawMessage) (variables, values []string) {
	var read func(path []string, raw stdjson.RawMessage)
	read = func(path []string, raw stdjson.RawMessage) {
		has := func(names ...string) bool {
			return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(path, name) })
		}
		word := value[string](raw)
		switch last := path[len(path)-1]; {
		case word == "":
		case last == "env_key", last == "bearer_token_env_var", has("env_http_headers"):
			variables = append(variables, word)
		case has("http_headers", "query_params", "experimental_bearer_token"):
			values = append(values, word)
		}
		for key, below := range table(raw) {
			read(append(slices.Clip(path), key), below)
		}
	}
	for _, keys := range []map[string]stdjson.RawMessage{file, further} {
		for key, raw := range keys {
			if path := strings.Split(key, "."); path[0] == "model_providers" || path[0] == "mcp_servers" {
				read(path, raw)
			}
		}
	}
	return variables, values
}

// learn notes the keys that providers and MCP servers get by a configuration and the further keys of a
// conversation, so that no error has them.
func (c *child) learn(file, further map[string]stdjson.RawMessage) {
	names, values := credentials(file, further)
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); slices.Contains(names, name) || run.MatchName(run.Secrets(), name) {
			values = append(values, value)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, secret := range text.NewSecrets(values...) {
		if !slices.Contains(c.secrets, secret) {
			c.secrets = append(slices.Clip(c.secrets), secret)
		}
	}
}

// redact replaces the keys that the app-server knows, and what looks like a key, in an error.
func (c *child) redact(s string) string {
	c.mu.Lock()
	secrets := c.secrets
	c.mu.Unlock()
	return secrets.Hide(redact(s))
}
