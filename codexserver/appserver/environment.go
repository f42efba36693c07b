package appserver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/text"
)

// maxConfig bounds a configuration file that is searched, in bytes.
const maxConfig = 4 << 20

// environment returns the environment of the app-server: that of this process, with
// Codex's folder. It leaves out keys of other programs, such as the client that started
// the server, unless the user's configuration of Codex names them, as far as it can be read.
func (e *Engine) environment() []string {
	env := os.Environ()
	if home := e.options.CodexHome; home != "" {
		env = append(env, "CODEX_HOME="+home)
	}
	var said strings.Builder
	said.WriteString(strings.Join(e.args, "\n"))
	home, err := config.Home(os.Getenv)
	if own := e.options.CodexHome; own != "" {
		home, err = filepath.Abs(own)
	}
	var files []os.DirEntry
	if err == nil {
		files, _ = os.ReadDir(home)
	}
	for _, file := range files {
		if filepath.Ext(file.Name()) != ".toml" || !file.Type().IsRegular() {
			continue
		}
		if b, err := safefile.Read(filepath.Join(home, file.Name()), maxConfig); err == nil {
			said.WriteString("\n" + string(b))
		}
	}
	return slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return run.MatchName(run.ClientSecrets(), name) && !strings.Contains(said.String(), name)
	})
}

// restrict hides variables from the conversation's commands: those that the configuration
// excludes, and the keys of providers and MCP servers. File is the
// configuration without s. Commands of a client of another origin get what remains of its
// environment, and nothing of Codex's.
func (s *settings) restrict(c *child, from *engine.Origin, file keys) error {
	const table, lenient = "shell_environment_policy", "ignore_default_excludes"
	all := file.with(s.own)
	s.shell = run.EnvPolicy{}
	if err := all.read(&s.shell, table); err != nil {
		return configErrorf("codex's configuration: %w", err)
	}
	names := slices.Concat(run.Secrets(), s.shell.Exclude, c.learn(file, s.own))
	slices.Sort(names)
	s.shell.Exclude = slices.Compact(names)
	policy := map[string]any{"exclude": s.shell.Exclude}
	if from != nil {
		s.client = from.Environ
		set := map[string]string{}
		for _, entry := range s.environ(c) {
			name, value, _ := strings.Cut(entry, "=")
			set[name] = value
		}
		policy = map[string]any{
			"inherit": "none", lenient: true, "exclude": []string{}, "include_only": []string{},
			"set": set, "experimental_use_profile": s.shell.UseProfile,
		}
	} else if all.text(table, lenient) == nil {
		s.shell.IgnoreDefaultExcludes = true // Codex's default
	}
	for key, v := range policy {
		s.own = s.own.with(at(v, table, key))
	}
	return nil
}

// environ returns the environment of the conversation's commands. Codex adds some variables to it.
func (s *settings) environ(c *child) []string {
	if s.client != nil {
		return s.shell.Environ(s.client)
	}
	return s.shell.Environ(c.environ)
}

// overrides returns what makes an environment of that of a command of command/exec, for which Codex knows no conversation: each
// variable, and null for all others that the app-server was started with or that its own configuration may set.
func (s *settings) overrides(c *child, environ []string) map[string]*string {
	all := map[string]*string{}
	for _, entry := range c.environ {
		name, _, _ := strings.Cut(entry, "=")
		all[name] = nil
	}
	for name := range s.shell.Set {
		all[name] = nil
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		all[name] = &value
	}
	delete(all, "") // as Windows has them for the folders of drives
	return all
}

// namesVariable has the keys of providers and MCP servers by which they get secrets, and whether a value there,
// or below, names an environment variable with one. Else it is one: a header, a query or a token.
var namesVariable = map[string]bool{
	"env_key": true, "bearer_token_env_var": true, "env_http_headers": true,
	"http_headers": false, "query_params": false, "experimental_bearer_token": false,
}

// credentials returns the secrets in providers and MCP servers, and the names of the environment variables with one.
func credentials(k keys) (names, values []string) {
	for name, v := range k {
		below := tableOf(v)
		variable, is := namesVariable[name]
		found := []string{get[string](k, name)}
		for key := range below {
			found = append(found, get[string](below, key))
		}
		found = slices.DeleteFunc(found, func(word string) bool { return word == "" })
		switch {
		case is && variable:
			names = append(names, found...)
		case is:
			values = append(values, found...)
		}
		further, secrets := credentials(below)
		names, values = append(names, further...), append(values, secrets...)
	}
	return names, values
}

// learn notes the secrets that providers and MCP servers get by a configuration and the further keys of a
// conversation, so that no error has them. It returns the names of the variables that have one.
func (c *child) learn(file, further keys) (names []string) {
	var values []string
	for _, k := range []keys{file.table(providersTable), file.table(serversTable), further.table(providersTable),
		further.table(serversTable)} {
		n, v := credentials(k)
		names, values = append(names, n...), append(values, v...)
	}
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); slices.Contains(names, name) ||
			run.MatchName(run.Secrets(), name) {
			values = append(values, value)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Concat(c.secrets, text.NewSecrets(values...))
	slices.Sort(all)
	c.secrets = slices.Compact(all)
	return names
}

// redact replaces the keys that the app-server knows, and what looks like a key, in an error.
func (c *child) redact(s string) string {
	c.mu.Lock()
	secrets := c.secrets
	c.mu.Unlock()
	return secrets.Hide(redact(s))
}
