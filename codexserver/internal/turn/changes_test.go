package turn_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestChangesOfTheNativeEngine runs every kind of change with the native engine.
func TestChangesOfTheNativeEngine(t *testing.T) {
	runChanges(t, func(t *testing.T, script string, roots []string, after func()) engine.Engine {
		model := providertest.New(
			providertest.Call(providertest.Shell("1", "sh", "-c", script)),
			providertest.Turn{Func: func(providertest.Request) providertest.Turn {
				after()
				return providertest.Say("done")
			}},
		)
		t.Cleanup(model.Close)
		mode := "danger-full-access"
		if len(roots) > 0 {
			mode = "workspace-write"
		} else {
			roots = []string{}
		}
		e, err := native.New(&native.Options{CodexHome: t.TempDir(), Overrides: map[string]any{
			"model": "scripted", "model_provider": "local", "model_providers.local.name": "local", "model_providers.local.base_url": model.BaseURL(),
			"model_providers.local.wire_api": "responses", "approval_policy": "never", "sandbox_mode": mode, "sandbox_workspace_write.writable_roots": roots,
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		return e
	})
}
