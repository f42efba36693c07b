package tools

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Conversation applies to the choices of newConversation what holds for a call of codex: its locked
// arguments, the folders that it may name, and the keys of its config. Folder is the working folder of a
// call that names none. It returns warnings about keys that it has left out, or an error that names an
// argument.
func (t *Table) Conversation(cfg *protocol.Config, folder string) (warnings []string, err error) {
	given := map[string]bool{}
	for name, is := range map[string]bool{
		"model": cfg.Model != "", "profile": cfg.Profile != "", "cwd": cfg.Cwd != "", "approval-policy": cfg.ApprovalPolicy != "",
		"sandbox": cfg.Sandbox != "", "base-instructions": cfg.BaseInstructions != nil, "include-plan-tool": cfg.IncludePlanTool != nil,
		"config": len(cfg.Overrides) > 0,
	} {
		if is {
			given[name] = true
		}
	}
	if err := errors.Join(unlocked(given, t.locked["codex"]), unlockedConfig(cfg.Overrides, t.locked["codex"])); err != nil {
		return nil, err
	}
	if cfg.Cwd, _, err = t.options.bounds().resolve(cmp.Or(cfg.Cwd, folder)); err != nil {
		return nil, fmt.Errorf("argument /cwd: %w", err)
	}
	return t.restrict(cfg)
}
