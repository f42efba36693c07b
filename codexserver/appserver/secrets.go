package appserver

import (
	stdjson "encoding/json"
	"os"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
)

// learn notes the keys that providers and MCP servers get by a configuration and the further keys of a
// conversation, so that no error has them.
func (c *child) learn(file, further map[string]stdjson.RawMessage) {
	names := configuredKeys(file)
	var values []string
	for _, key := range []string{"model_providers", "mcp_servers"} {
		values = append(values, literals([]string{key}, file[key])...)
	}
	for key, value := range further {
		path := strings.Split(key, ".")
		names = append(names, keyVariables(path, value)...)
		values = append(values, literals(path, value)...)
	}
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); slices.Contains(names, name) || run.MatchName(run.Secrets(), name) {
			values = append(values, value)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, secret := range config.NewSecrets(values...) {
		if !slices.Contains(c.secrets, secret) {
			c.secrets = append(slices.Clip(c.secrets), secret)
		}
	}
}

// literals returns the values that a table of providers or MCP servers has for headers, queries and
// tokens.
func literals(path []string, raw stdjson.RawMessage) (values []string) {
	if path[0] != "model_providers" && path[0] != "mcp_servers" {
		return nil
	}
	if value := optional[string](raw); value != nil {
		if slices.ContainsFunc(path, func(s string) bool {
			return slices.Contains([]string{"http_headers", "query_params", "experimental_bearer_token"}, s)
		}) {
			values = append(values, *value)
		}
		return values
	}
	for key, value := range table(raw) {
		values = append(values, literals(append(slices.Clip(path), key), value)...)
	}
	return values
}

// redact replaces the keys that the app-server knows, and what looks like a key, in an error.
func (c *child) redact(text string) string {
	c.mu.Lock()
	secrets := c.secrets
	c.mu.Unlock()
	return secrets.Hide(redact(text))
}
