package appserver_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestResumeWithinTheConfiguration resumes a thread whose last turn could do more than the
// configuration allows.
func TestResumeWithinTheConfiguration(t *testing.T) {
	for _, tt := range []struct {
		name            string
		file            map[string]any
		cfg             protocol.Config
		sandbox, policy string // what Codex says
		want            string // parts of the parameters
		refused         bool
	}{
		{"configured", map[string]any{"sandbox_mode": "workspace-write", "approval_policy": "untrusted"}, protocol.Config{Bounded: true}, "workspaceWrite", "untrusted", `"approvalPolicy":"untrusted" "sandbox":"workspace-write"`, false},
		{"not configured", nil, protocol.Config{Bounded: true}, "readOnly", "on-request", `"approvalPolicy":"on-request" "sandbox":"read-only"`, false},
		{"less", map[string]any{"sandbox_mode": "danger-full-access", "approval_policy": "never"}, protocol.Config{Bounded: true}, "readOnly", "untrusted", `"sandbox":"danger-full-access"`, false},
		{"a wider sandbox", nil, protocol.Config{Bounded: true}, "dangerFullAccess", "on-request", `"sandbox":"read-only"`, true},
		{"an unknown sandbox", nil, protocol.Config{Bounded: true}, "externalSandbox", "on-request", `"sandbox":"read-only"`, true},
		{"no sandbox", nil, protocol.Config{Bounded: true}, "", "on-request", `"sandbox":"read-only"`, true},
		{"another policy", nil, protocol.Config{Bounded: true}, "readOnly", "never", `"sandbox":"read-only"`, true},
		{"not bounded", nil, protocol.Config{}, "dangerFullAccess", "never", `"threadId"`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				f.config, f.policy, f.sandbox = tt.file, fmt.Sprintf("%q", tt.policy), fmt.Sprintf(`{"type":%q}`, tt.sandbox)
				params := f.keep("thread/resume")
				tt.cfg.Cwd = t.TempDir()
				_, err := f.engine(appserver.Options{}).Resume(t.Context(), "/rollout-"+threadID+".jsonl", tt.cfg, &recorder{})
				var refused *engine.RefusedError
				if errors.As(err, &refused) != tt.refused || err != nil && !tt.refused {
					t.Errorf("%v", err)
				}
				sent := strings.Join(*params, "")
				for part := range strings.FieldsSeq(tt.want) {
					if !strings.Contains(sent, part) {
						t.Errorf("sent %s, want %s", sent, part)
					}
				}
				if !tt.cfg.Bounded && strings.Contains(sent, "sandbox") {
					t.Errorf("sent %s", sent)
				}
			})
		})
	}
}
