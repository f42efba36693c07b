package native

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/setting"
)

// toolOptions returns the options of a conversation's tools. Processes that its commands leave running go
// to left.
func (e *Engine) toolOptions(cfg *config.Config, left *run.Leftovers) tool.Options {
	family := model.FamilyOf(cfg.Model)
	files := e.fileTools(cfg)
	shell := ""
	if cfg.ShellEnvironment.UseProfile {
		shell = e.getenv("SHELL")
	}
	tip := e.options.HostsTip
	if tip != "" && (e.options.Hosts || len(e.options.Sandbox.Helper) > 0 || box.HostsAvailable() != nil) {
		tip = ""
	}
	return tool.Options{
		Environ:    environ(cfg),
		Set:        slices.Collect(maps.Keys(cfg.ShellEnvironment.Set)),
		Client:     func() []string { return nameable(cfg) },
		Shell:      shell,
		Strict:     e.options.Sandbox.Strict || cfg.OnlyReads,
		ReadOnly:   cfg.OnlyReads,
		Ask:        e.options.Ask,
		Sandbox:    tool.Confine(e.newSandbox(cfg)),
		Processes:  &e.processes,
		Leftovers:  left,
		Timeout:    e.options.Limits.Command,
		Programs:   e.programs,
		Hosts:      e.hostsFor(cfg),
		Domain:     cfg.Permitted.Domain,
		HostsTip:   tip,
		LocalShell: family.LocalShell && cfg.Provider().WireAPI == config.WireResponses,
		FileTools:  files,
		PatchTool:  !cfg.OnlyReads && (family.PatchTool && !files || cfg.IncludeApplyPatchTool),
		PlanTool:   !cfg.OnlyReads && cfg.IncludePlanTool,
		ImageTool:  cfg.Tools.ViewImage == nil || *cfg.Tools.ViewImage,
	}
}

// fileTools reports whether a conversation has the file tools.
func (e *Engine) fileTools(cfg *config.Config) bool {
	switch e.options.Tools {
	case setting.ToolsFiles:
		return true
	case setting.ToolsCodex:
		return false
	}
	return cfg.Provider().WireAPI != config.WireResponses
}

// newSandbox makes the sandbox of a conversation, or of a command outside conversations.
func (e *Engine) newSandbox(cfg *config.Config) *box.Sandbox {
	linked := config.Linked(e.options.CodexHome) // a sandbox cannot keep a file in a writable folder
	private := slices.Concat([]string{e.options.CodexHome}, e.options.Guarded, e.homes(), linked)
	return box.New(box.Options{
		Helper:    e.options.Sandbox.Helper,
		Hosts:     e.options.Hosts || cfg.Permitted.Reaches(),
		Profile:   cfg.Permitted,
		Find:      func(name string) (string, error) { return e.programs.Find(name, "", e.getenv("PATH")) },
		Protected: append([]string{e.options.CodexHome}, linked...),
		Trees:     git.Worktrees(e.options.CodexHome),
		Sealed:    []string{filepath.Join(e.options.CodexHome, "codex-mcp")},
		Private:   private,
		Named:     cfg.NamedRoots,
		Programs:  e.programs,
		Layers: box.Layers{Folder: filepath.Join(e.options.CodexHome, "codex-mcp", "layers"),
			Caches: e.options.Sandbox.Caches},
	})
}

// homes returns the user's home, as the environment of the engine has it and as the system does.
func (e *Engine) homes() (all []string) {
	if home := e.getenv("HOME"); filepath.IsAbs(home) {
		all = append(all, home)
	}
	if home, err := os.UserHomeDir(); err == nil {
		all = append(all, home)
	}
	return all
}

// webSearchType is the type of the search tool, which the provider runs.
const webSearchType = "web_search"

// offer returns the tools that the model can call.
func (t *turn) offer() []model.Tool {
	away := t.conv.away()
	tools := append(t.conv.box.Offer(away), t.conv.work.servers.offer...)
	if t.conv.provider().cfg.Tools.WebSearch && !t.conv.chat() {
		tools = append(tools, model.Tool{Type: webSearchType, Settings: webSearch(t.conv.cfg.WebSearch)})
	}
	return tools
}

// webSearch returns the configuration of the search tool in the provider's form.
func webSearch(s config.WebSearch) map[string]any {
	w := map[string]any{}
	if s.ContextSize != "" {
		w["search_context_size"] = s.ContextSize
	}
	if s.Cached {
		w["external_web_access"] = false
	}
	if s.AllowedDomains != nil {
		w["filters"] = map[string]any{"allowed_domains": s.AllowedDomains}
	}
	if l := s.Location; l != (config.Location{}) {
		place := map[string]string{"type": "approximate", "country": l.Country, "region": l.Region, "city": l.City,
			"timezone": l.Timezone}
		maps.DeleteFunc(place, func(_, value string) bool { return value == "" })
		w["user_location"] = place
	}
	return w
}

// call runs a tool. An error ends the turn; mistakes of the model are in the result, which
// the model reads.
func (t *turn) call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if target, ok := t.conv.work.servers.tools[call.Name]; ok && !call.Custom && ctx.Err() == nil {
		return t.callServer(ctx, target, call)
	}
	result, err := t.tools.Call(ctx, call)
	if result.Unknown {
		result.Output += "; the tools are " + strings.Join(names(t.offer()), ", ")
	}
	return result, err
}

// maxNames is how many tools are listed for a model that calls one that is not there.
const maxNames = 100

// names returns the names of the tools that a model can call.
func names(tools []model.Tool) (all []string) {
	for _, one := range tools {
		if name := cmp.Or(one.Name, one.Type); name != webSearchType {
			all = append(all, name)
		}
	}
	if n := len(all) - maxNames; n > 0 {
		all = append(all[:maxNames], fmt.Sprintf("and %d more", n))
	}
	return all
}
