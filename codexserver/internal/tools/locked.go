package tools

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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

// unlocked refuses arguments that are locked.
func unlocked[V any](given map[string]V, locked []string) error {
	for _, name := range locked {
		if _, ok := given[name]; ok {
			return fmt.Errorf("argument /%s is locked: the server's own configuration decides", name)
		}
	}
	return nil
}

// unlockedConfig refuses keys of the argument config, nil without any, that choose the same as a locked argument.
func unlockedConfig(config jsontext.Value, locked []string) error {
	var tree any
	if len(config) > 0 {
		if err := json.Unmarshal(config, &tree); err != nil {
			return fmt.Errorf("argument /config: %w", err)
		}
	}
	for _, name := range locked {
		for _, key := range sameInConfig(name) {
			if holds(tree, key) {
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
