package appserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mcpServer is the part of the configuration of one of Codex's MCP servers that the bridge
// reads.
type mcpServer struct {
	command, url string
	args         []string
	env          map[string]string
	cwd          string
}

// setServers disables MCP servers in a conversation: those that would start this program
// again, and those that the command line disables. Codex refuses an entry without a
// command, so a disabled server that is not configured gets one, which never runs. File is
// Codex's configuration for the folder.
func (e *Engine) setServers(c *child, file map[string]json.RawMessage, cwd string, p *threadParams) error {
	disabled := slices.Concat(e.defaults.disabled, disabledIn(p.Config))
	servers, err := serversOf(file, p.Config)
	if err != nil {
		return err
	}
	keys := map[string]any{}
	for _, name := range e.defaults.disabled {
		if _, own := p.Config[serverKey(name, "enabled")]; !own {
			keys[serverKey(name, "enabled")] = false
		}
	}
	for _, name := range disabled {
		if s := servers[name]; s.command == "" && s.url == "" {
			keys[serverKey(name, "command")] = "disabled"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if s := servers[name]; s.command != "" && e.self.StartedBy(append([]string{s.command}, s.args...), absolute(s.cwd, cwd), s.env) {
			keys[serverKey(name, "enabled")] = false
			if _, said := e.left.LoadOrStore(name, true); !said {
				c.log.Warn(fmt.Sprintf("codex: mcp_servers.%s is left out: it is this server, which would start itself without end", name))
			}
		}
	}
	return p.set(keys)
}

// serversOf returns the MCP servers of a conversation: those of Codex's configuration
// files, changed by the keys of the conversation.
func serversOf(file, own map[string]json.RawMessage) (map[string]mcpServer, error) {
	all := map[string]map[string]json.RawMessage{}
	if raw := file["mcp_servers"]; isSet(raw) {
		if err := json.Unmarshal(raw, &all); err != nil {
			return nil, fmt.Errorf("mcp_servers of codex: %w", err)
		}
	}
	for key, raw := range own {
		name, member, ok := splitServerKey(key)
		if !ok {
			continue
		}
		if all[name] == nil {
			all[name] = map[string]json.RawMessage{}
		}
		all[name][member] = raw
	}
	servers := make(map[string]mcpServer, len(all))
	for name, members := range all {
		s := mcpServer{
			command: value[string](members["command"]), args: value[[]string](members["args"]),
			env: value[map[string]string](members["env"]), cwd: value[string](members["cwd"]), url: value[string](members["url"]),
		}
		if path := value[string](members["env.PATH"]); path != "" {
			s.env = map[string]string{"PATH": path}
		}
		servers[name] = s
	}
	return servers, nil
}

const serverKeys = "mcp_servers."

func serverKey(name, member string) string { return serverKeys + name + "." + member }

// splitServerKey splits a flat key, mcp_servers.NAME.MEMBER.
func splitServerKey(key string) (name, member string, ok bool) {
	rest, ok := strings.CutPrefix(key, serverKeys)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ".")
}

// disabledIn returns the servers that flat keys disable, sorted.
func disabledIn(keys map[string]json.RawMessage) []string {
	var names []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		name, member, ok := splitServerKey(key)
		if ok && member == "enabled" && string(keys[key]) == "false" {
			names = append(names, name)
		}
	}
	return names
}

// takeDisabled returns the servers that flat keys disable, and removes these keys.
func takeDisabled(keys map[string]json.RawMessage) []string {
	names := disabledIn(keys)
	for _, name := range names {
		delete(keys, serverKey(name, "enabled"))
	}
	return names
}
