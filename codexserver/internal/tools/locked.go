package tools

import (
	"fmt"
	"slices"
	"strings"
)

// sameInConfig returns the keys of the argument config that choose what an argument
// chooses. A key holds for what is below it.
func sameInConfig(argument string) []string {
	switch argument {
	case "approval-policy":
		return []string{"approval_policy"}
	case "model":
		return []string{"model"}
	case "profile":
		return []string{"profile"}
	case "sandbox":
		return []string{"sandbox_mode", "sandbox_workspace_write", "sandbox_permissions", "permissions", "default_permissions"}
	case "web-search":
		return []string{"web_search", "tools.web_search", "tools.web_search_request", "features.web_search_request"}
	}
	return nil
}

// allLocked returns the locked arguments and those that would choose the same:
// config can search the web.
func allLocked(names []string) []string {
	all := slices.Clone(names)
	if slices.Contains(names, "config") {
		all = append(all, "web-search")
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// unlocked refuses arguments that are locked, and keys of config that choose the same.
func unlocked(given map[string]any, locked []string) error {
	for _, name := range locked {
		if _, ok := given[name]; ok {
			return fmt.Errorf("argument /%s is locked: the server's own configuration decides", name)
		}
	}
	for _, name := range locked {
		for _, key := range sameInConfig(name) {
			if holds(given["config"], key) {
				return fmt.Errorf("argument /config: %s is locked with the argument /%s: the server's own configuration decides", key, name)
			}
		}
	}
	return nil
}

// holds reports whether a tree, whose keys may be dotted, has the dotted key or a part of it.
func holds(tree any, key string) bool {
	object, ok := tree.(map[string]any)
	if !ok {
		return false
	}
	for name, v := range object {
		if name == key || strings.HasPrefix(name, key+".") {
			return true
		}
		if rest, ok := strings.CutPrefix(key, name+"."); ok && holds(v, rest) {
			return true
		}
	}
	return false
}

// lockedOf returns those names that are also arguments of codex-reply.
func lockedOf(names []string) []string {
	var own []string
	for _, name := range names {
		if slices.Contains(turnNames, name) {
			own = append(own, name)
		}
	}
	return own
}
