package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/permission"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// PermissionProfile is a [permissions.NAME] as Codex has it. Filesystem and Network are read by hand: their keys are paths,
// and what cannot be kept must not start.
type PermissionProfile struct {
	Description    string          `json:"description"`
	Extends        string          `json:"extends"`
	WorkspaceRoots map[string]bool `json:"workspace_roots"`
	Filesystem     layer           `json:"filesystem"`
	Network        layer           `json:"network"`
}

const (
	chosenProfile = "default_permissions"
	profileTable  = "permissions"
	sandboxMode   = "sandbox_mode"
	fullProfile   = ":danger-full-access"
	depthKey      = "glob_scan_max_depth"
)

// builtinProfiles are the profiles of Codex that others can extend.
var builtinProfiles = map[string]layer{
	":read-only": {"filesystem": layer{permission.Root: "read"}},
	":workspace": {"filesystem": layer{
		permission.Root: "read", permission.SlashTmp: "write", permission.TmpDir: "write",
		permission.Workspace: layer{".": "write", ".git": "read", ".agents": "read", ".codex": "read"},
	}},
}

// permit sets what a profile allows, if the highest of the layers that choose what commands may touch names one. In one layer
// a profile wins over a sandbox mode, as in Codex. A call may choose less than the user's profile allows, and nothing else.
func (c *Config) permit(call layer, own ...layer) error {
	byProfile, byMode := false, false
	for _, l := range own {
		_, names := l[chosenProfile]
		_, chooses := l[sandboxMode]
		if names || chooses {
			byProfile, byMode = names, !names
		}
	}
	_, names := call[chosenProfile] // which only a call that is trusted has
	if names && byProfile {
		return fmt.Errorf("%s: the configuration's own decides", chosenProfile)
	}
	if !byProfile && !names {
		if len(c.Permissions) > 0 && !byMode && call[sandboxMode] == nil {
			return fmt.Errorf("%s: is missing, so none of the profiles in [%s] counts; name one, or write sandbox_mode",
				chosenProfile, profileTable)
		}
		return nil
	}
	merged := stack(layer{}, own...)
	if names {
		Merge(merged, layer{chosenProfile: call[chosenProfile], profileTable: call[profileTable]})
	}
	name := c.DefaultPermissions
	if table, is := call[workspaceTable].(layer); is && len(table) > 0 {
		return fmt.Errorf("%s: the profile %q of %s decides", workspaceTable, name, chosenProfile)
	}
	network := false
	mode := protocol.SandboxDangerFullAccess
	for named := range c.Permissions {
		if strings.HasPrefix(named, ":") {
			return keyErrorf([]string{profileTable, named}, "the names with a colon are those of built-in profiles")
		}
	}
	if name != fullProfile {
		profile, reaches, err := profileFrom(merged, name)
		if err != nil {
			return err
		}
		mode, network = protocol.SandboxReadOnly, reaches
		for _, rule := range profile.Rules {
			if rule.Access != permission.Write {
				continue
			}
			mode = protocol.SandboxWorkspaceWrite
			if filepath.IsAbs(rule.Path) || rule.Path == permission.Root {
				c.NamedRoots = append(c.NamedRoots,
					strings.Replace(rule.Path, permission.Root, string(filepath.Separator), 1))
			}
		}
		c.NamedRoots = append(c.NamedRoots, profile.Workspaces...)
		c.Permitted = profile
	}
	chosen, asked := "", call[sandboxMode] != nil
	if asked {
		chosen = string(c.SandboxMode)
	}
	switch {
	case !asked || chosen == string(mode):
	case chosen == string(protocol.SandboxReadOnly):
		mode, network = protocol.SandboxReadOnly, false
	case c.Permitted != nil:
		return fmt.Errorf("%s: %q is more than the profile %q of %s allows; leave it out, or choose %q",
			sandboxMode, chosen, name, chosenProfile, protocol.SandboxReadOnly)
	default:
		mode = protocol.SandboxMode(chosen)
	}
	c.SandboxMode, c.SandboxWorkspaceWrite = mode, WorkspaceWrite{NetworkAccess: network}
	if mode == protocol.SandboxWorkspaceWrite {
		c.SandboxWorkspaceWrite.WritableRoots = slices.Clone(c.NamedRoots)
	}
	return nil
}

// profileFrom returns a profile of a configuration, and whether its commands have the network.
func profileFrom(own layer, name string) (p *permission.Profile, network bool, err error) {
	merged, err := extended(own, name, nil)
	if err != nil {
		return nil, false, err
	}
	var table PermissionProfile
	if err := decodeValue([]string{profileTable, name}, merged, reflect.ValueOf(&table).Elem()); err != nil {
		return nil, false, err
	}
	p = &permission.Profile{Name: "the profile " + name, Whole: true}
	key := []string{profileTable, name}
	for _, folder := range slices.Sorted(maps.Keys(table.WorkspaceRoots)) {
		if !table.WorkspaceRoots[folder] {
			continue
		}
		path, err := homed(folder)
		if err != nil {
			return nil, false, keyErrorf(append(key, "workspace_roots", folder), "%w", err)
		}
		p.Workspaces = append(p.Workspaces, path)
	}
	if err := readFiles(p, append(key, "filesystem"), table.Filesystem); err != nil {
		return nil, false, err
	}
	network, err = readNetwork(p, append(key, "network"), table.Network)
	return p, network, err
}

// extended returns a profile with what those that it extends say, which it wins over.
func extended(own layer, name string, from []string) (layer, error) {
	if builtin, is := builtinProfiles[name]; is {
		return builtin, nil
	}
	key := chosenProfile
	if len(from) > 0 {
		key = JoinKey(profileTable, from[len(from)-1], "extends")
	}
	switch {
	case name == fullProfile:
		return nil, fmt.Errorf("%s: %s cannot be extended", key, name)
	case strings.HasPrefix(name, ":"):
		return nil, fmt.Errorf("%s: %q is no built-in profile: want %s or %s", key, name,
			strings.Join(slices.Sorted(maps.Keys(builtinProfiles)), ", "), fullProfile)
	case slices.Contains(from, name):
		return nil, fmt.Errorf("%s: %q extends itself", key, name)
	}
	table, is := At(own, profileTable, name).(layer)
	if !is {
		return nil, fmt.Errorf("%s: there is no profile %q: [%s] is missing", key, name, JoinKey(profileTable, name))
	}
	for key := range table {
		if !slices.Contains(known(reflect.TypeFor[PermissionProfile](), true), key) {
			return nil, keyErrorf([]string{profileTable, name, key}, "is no key of a profile")
		}
	}
	base, is := table["extends"].(string)
	if !is {
		return table, nil
	}
	below, err := extended(own, base, append(from, name))
	if err != nil {
		return nil, err
	}
	return stack(layer{}, below, table), nil
}

// readFiles adds the rules of a table filesystem.
func readFiles(p *permission.Profile, key []string, table layer) error {
	for _, name := range slices.Sorted(maps.Keys(table)) {
		key := append(slices.Clip(key), name)
		if name == depthKey {
			if err := decodeValue(key, table[name], reflect.ValueOf(&p.Depth).Elem()); err != nil {
				return err
			}
			if p.Depth < 1 {
				return keyErrorf(key, "want 1 or more")
			}
			continue
		}
		path, err := placeOf(name)
		if err != nil {
			return keyErrorf(key, "%w", err)
		}
		below, is := table[name].(layer)
		if !is {
			below = layer{".": table[name]}
		}
		for _, sub := range slices.Sorted(maps.Keys(below)) {
			key := key
			if is {
				key = append(slices.Clip(key), sub)
			}
			if err := addRule(p, key, path, sub, below[sub]); err != nil {
				return keyErrorf(key, "%w", err)
			}
		}
	}
	return nil
}

// addRule adds the rule for what is below a path, "." for the path itself.
func addRule(p *permission.Profile, key []string, base, sub string, value any) error {
	text, _ := value.(string)
	access := permission.Access(text)
	if text == "none" {
		access = permission.Deny
	}
	if access != permission.Deny && access != permission.Read && access != permission.Write {
		return errors.New(`want "read", "write" or "deny"`)
	}
	if sub != "." {
		switch {
		case strings.HasPrefix(base, ":") && base != permission.Workspace:
			return fmt.Errorf("%s takes no paths below it", base)
		case sub == "" || !filepath.IsLocal(sub) || path.Clean(sub) != strings.TrimSuffix(sub, "/"):
			return fmt.Errorf("%q is no path below it", sub)
		}
		base += "/" + strings.TrimSuffix(sub, "/")
	}
	if strings.ContainsAny(base, "*?[]") && access != permission.Deny {
		whole, is := strings.CutSuffix(base, "/**")
		if !is || strings.ContainsAny(whole, "*?[]") {
			return fmt.Errorf("a pattern can only deny; for %q write a path, or one with /** at its end", access)
		}
		base = whole
	}
	if base == permission.Minimal && access != permission.Read {
		return errors.New("it can only be read")
	}
	if err := permission.CheckGlob(base); err != nil {
		return err
	}
	p.Rules = append(p.Rules, permission.Rule{Key: JoinKey(key...), Path: base, Access: access})
	return nil
}

// placeOf returns the path that a key names: absolute, or one that stands for others.
func placeOf(name string) (string, error) {
	switch name {
	case permission.Root, permission.Minimal, permission.Workspace, permission.TmpDir, permission.SlashTmp:
		return name, nil
	case ":project_roots":
		return permission.Workspace, nil
	}
	if strings.HasPrefix(name, ":") {
		return "", fmt.Errorf("%q is not known here, so it cannot be kept", name)
	}
	return homed(name)
}

// homed returns an absolute path, with the user's home for ~.
func homed(name string) (string, error) {
	rest, is := strings.CutPrefix(name, "~")
	if is && (rest == "" || rest[0] == '/') {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		name = home + rest
	}
	if !filepath.IsAbs(name) {
		return "", fmt.Errorf("%q is no absolute path, and does not begin with ~/", name)
	}
	return filepath.Clean(name), nil
}

// readNetwork returns whether commands have the network, and sets the host names if there are rules for them. What it does
// not know may be there if it says no.
func readNetwork(p *permission.Profile, key []string, table layer) (on bool, err error) {
	if enabled, is := table["enabled"]; is {
		if err := decodeValue(append(key, "enabled"), enabled, reflect.ValueOf(&on).Elem()); err != nil {
			return false, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		value := table[name]
		switch name {
		case "enabled", "allow_local_binding":
			continue
		case "domains":
			domains, is := value.(layer)
			if !is {
				return false, keyErrorf(append(key, name), "want a table")
			}
			for host, word := range domains {
				if word != "allow" && word != "deny" {
					return false, keyErrorf(append(key, name, host), `want "allow" or "deny"`)
				}
				if p.Domains == nil {
					p.Domains = map[string]bool{}
				}
				p.Domains[host] = word == "allow"
			}
			continue
		case "mode":
			if value == "full" {
				continue
			}
		}
		if table, is := value.(layer); value == false || value == "" || is && len(table) == 0 {
			continue
		}
		return false, keyErrorf(append(key, name),
			"cannot be kept here; remove it, or write sandbox_mode in place of %s", chosenProfile)
	}
	if !on {
		p.Domains = nil
	}
	return on && p.Domains == nil, nil
}

// Withhold adds what commands do not read besides, in each sandbox mode: absolute paths, ~ for the home, and patterns. A relative one is below each
// folder that the conversation works in. The key names the list.
func (c *Config) Withhold(key string, denied []string) error {
	if len(denied) == 0 {
		return nil
	}
	p := &permission.Profile{Name: key}
	if c.Permitted != nil {
		p = c.Permitted
	}
	for i, name := range denied {
		rule, err := withheld(name)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		rule.Key = key + "." + strconv.Itoa(i)
		p.Rules = append(p.Rules, rule)
	}
	c.Permitted = p
	return nil
}

// withheld returns the rule for an entry of sandbox.deny_read.
func withheld(name string) (permission.Rule, error) {
	path := permission.Workspace + "/" + filepath.ToSlash(name)
	if filepath.IsAbs(name) || strings.HasPrefix(name, "~") {
		var err error
		if path, err = homed(name); err != nil {
			return permission.Rule{}, err
		}
	} else if !filepath.IsLocal(name) {
		return permission.Rule{}, fmt.Errorf("%q leads out of the working folder", name)
	}
	return permission.Rule{Path: path, Access: permission.Deny}, permission.CheckGlob(path)
}
