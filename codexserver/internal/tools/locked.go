package tools

import (
	stdjson "encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
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

// unlockedConfig reads the texts of the argument config, and refuses keys that choose the same as a locked argument.
func unlockedConfig(overrides map[string]stdjson.RawMessage, locked []string) error {
	config.ReadTexts(overrides)
	for _, name := range locked {
		for _, key := range sameInConfig(name) {
			if config.Chooses(overrides, key) {
				return fmt.Errorf("argument /config: %s is locked with the argument /%s: the server's own configuration decides", key, name)
			}
		}
	}
	return nil
}
