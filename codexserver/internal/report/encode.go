package report

import (
	"math"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxName and maxReason are how many bytes are shown of a name and of the reason of a reroute, and
// maxRerouted how many reroutes, which are never cut. All but the first one have maxReroutes bytes of JSON.
// maxTree is for the path of a worktree.
const maxName, maxReason, maxRerouted, maxReroutes, maxTree = 100, 200, 3, 1000, 2000

// MinLimit is the least size of a report, in bytes of JSON.
const MinLimit = 4096

// counts are the elements of lists and the bytes of texts that were left out.
type counts struct {
	Content  int `json:"content,omitzero"`
	Output   int `json:"output,omitzero"`
	Changes  int `json:"changes,omitzero"`
	Unknown  int `json:"unknown,omitzero"`
	Commands int `json:"commands,omitzero"`
	Refused  int `json:"refused,omitzero"`
	Plan     int `json:"plan,omitzero"`
	Findings int `json:"findings,omitzero"`
}

// truncation is how much was left out, and where the whole can be read.
type truncation struct {
	counts
	See string `json:"see,omitzero"`
}

// wire is a report as JSON.
type wire struct {
	ThreadID    string         `json:"threadId"`
	Content     jsontext.Value `json:"content"`
	Output      jsontext.Value `json:"output,omitzero"`
	Findings    jsontext.Value `json:"findings,omitzero"`
	Verdict     *wireVerdict   `json:"verdict,omitzero"`
	Status      turnlog.Status `json:"status,omitzero"`
	Stopped     string         `json:"stopped,omitzero"`
	Model       string         `json:"model,omitzero"`
	Rerouted    []wireReroute  `json:"rerouted,omitempty"`
	Worktree    *Worktree      `json:"worktree,omitzero"`
	DurationMS  int64          `json:"durationMs"`
	Usage       *wireUsage     `json:"usage,omitzero"`
	Plan        jsontext.Value `json:"plan,omitzero"`
	ChangesFrom Source         `json:"changesFrom,omitzero"`
	Changes     jsontext.Value `json:"changes"`
	Unknown     jsontext.Value `json:"unknown,omitzero"`
	Commands    jsontext.Value `json:"commands"`
	Refused     jsontext.Value `json:"refused"`
	Truncated   truncation     `json:"truncated,omitzero"`
}

type wireUsage struct {
	Turn   wireTokens `json:"turn"`
	Thread wireTokens `json:"thread"`
}

type wireTokens struct {
	Input     int64 `json:"input"`
	Cached    int64 `json:"cached"`
	Output    int64 `json:"output"`
	Reasoning int64 `json:"reasoning"`
}

type wireReroute struct {
	FromProvider string `json:"fromProvider,omitzero"`
	FromModel    string `json:"fromModel"`
	ToProvider   string `json:"toProvider,omitzero"`
	ToModel      string `json:"toModel"`
	Reason       string `json:"reason"`
}

type wireChange struct {
	Path    string          `json:"path"`
	From    string          `json:"from,omitzero"`
	Kind    repo.ChangeKind `json:"kind"`
	Added   *int            `json:"added,omitzero"`
	Removed *int            `json:"removed,omitzero"`
	By      Origin          `json:"by,omitzero"`
}

type wireGap struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

type wireCommand struct {
	ID         int    `json:"id,omitzero"`
	Command    string `json:"command"`
	Cwd        string `json:"cwd,omitzero"`
	ExitCode   *int   `json:"exitCode,omitzero"`
	DurationMS *int64 `json:"durationMs,omitzero"`
	ApprovedBy string `json:"approvedBy,omitzero"`
}

type wireRefusal struct {
	Kind   string `json:"kind"`
	What   string `json:"what"`
	Cwd    string `json:"cwd,omitzero"`
	Why    string `json:"why"`
	By     string `json:"by"`
	Reason string `json:"reason,omitzero"`
}

type wireStep struct {
	Step   string `json:"step"`
	Status string `json:"status"`
}

// JSON returns the report as a JSON object of at most limit bytes. A limit of 0 means
// [setting.DefaultResult], a smaller one than [MinLimit] means that. A report that is too long loses
// parts of its longest lists and texts; its member truncated says how much.
func (r *Report) JSON(limit int) []byte {
	if limit == 0 {
		limit = setting.DefaultResult
	}
	limit = max(limit, MinLimit)
	w := wire{
		ThreadID: turnlog.Show(r.ThreadID, maxName), Status: r.Status, Stopped: turnlog.Show(r.Stopped, turnlog.MaxWords), Model: turnlog.Show(r.Model.Name, maxName),
		DurationMS: r.Duration.Milliseconds(), Usage: usageOf(r.Usage), ChangesFrom: r.Changes.From,
	}
	size := 0
	for i, m := range r.Model.Rerouted[:min(len(r.Model.Rerouted), maxRerouted)] {
		one := wireReroute{
			turnlog.Show(m.FromProvider, maxName), turnlog.Show(m.FromModel, maxName),
			turnlog.Show(m.ToProvider, maxName), turnlog.Show(m.ToModel, maxName), turnlog.Show(m.Reason, maxReason),
		}
		if size += len(encode(one)); i > 0 && size > maxReroutes {
			break
		}
		w.Rerouted = append(w.Rerouted, one)
	}
	if r.Changes.Worktree != nil {
		w.Worktree = &Worktree{turnlog.Show(r.Changes.Worktree.Path, maxTree), turnlog.Show(r.Changes.Worktree.Branch, maxName)}
	}
	content := textPart(r.Content, limit)
	output := outputPart(r.Output)
	plan := listPart(len(r.Plan), false, limit, func(i int) any {
		return wireStep{turnlog.Show(r.Plan[i].Step, turnlog.MaxWords), turnlog.Show(r.Plan[i].Status, maxName)}
	})
	changes := listPart(len(r.Changes.List), false, limit, func(i int) any { return changeOf(r.Changes.List[i]) })
	unknown := listPart(len(r.Changes.Unknown), false, limit, func(i int) any {
		return wireGap{showPath(r.Changes.Unknown[i].Path), turnlog.Show(r.Changes.Unknown[i].Why, turnlog.MaxWords)}
	})
	commands := listPart(len(r.Commands), true, limit, func(i int) any { return commandOf(r.Commands[i]) })
	refused := listPart(len(r.Refused), true, limit, func(i int) any {
		f := r.Refused[i]
		return wireRefusal{f.Kind, f.What, f.Cwd, f.Why, turnlog.Show(string(f.By), maxName), string(f.Reason)}
	})
	findings := findingsPart(r.Review, limit)
	parts := []part{content, output, findings, plan, changes, unknown, commands, refused}
	w.Verdict = verdictOf(r.Review)
	w.Content, w.Changes, w.Commands, w.Refused = []byte(`""`), []byte(`[]`), []byte(`[]`), []byte(`[]`)
	// The parts share the room that is left after the members set by now and their names.
	most := math.MaxInt
	w.Truncated = truncation{counts{most, most, most, most, most, most, most, most}, turnlog.Show(r.More, maxName)}
	fixed := len(encode(w)) + len(`"output":,"findings":,"plan":,"unknown":,`)
	each := share(parts, limit-fixed)
	cut := func(p part, omitted *int) (v jsontext.Value) {
		v, *omitted = p.cut(each)
		return v
	}
	w.Content = cut(content, &w.Truncated.Content)
	w.Output = cut(output, &w.Truncated.Output)
	w.Findings = cut(findings, &w.Truncated.Findings)
	w.Plan = cut(plan, &w.Truncated.Plan)
	w.Changes = cut(changes, &w.Truncated.Changes)
	w.Unknown = cut(unknown, &w.Truncated.Unknown)
	w.Commands = cut(commands, &w.Truncated.Commands)
	w.Refused = cut(refused, &w.Truncated.Refused)
	w.Truncated.Changes += r.Changes.omitted
	w.Truncated.Commands += r.dropped.Commands
	w.Truncated.Refused += r.dropped.Refused
	if w.Truncated.counts == (counts{}) {
		w.Truncated.See = ""
	}
	if len(r.Plan) == 0 {
		w.Plan = nil
	}
	if len(r.Changes.Unknown) == 0 {
		w.Unknown = nil
	}
	if r.Review == nil {
		w.Findings = nil
	}
	return encode(w)
}

// encode returns v as JSON. It cannot fail: the numbers of a report are finite, its JSON
// values are valid, and bytes that are not UTF-8 become U+FFFD.
func encode(v any) []byte {
	b, _ := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	return b
}

func usageOf(u *turnlog.Usage) *wireUsage {
	if u == nil {
		return nil
	}
	of := func(t protocol.TokenUsage) wireTokens {
		return wireTokens{t.InputTokens, t.CachedInputTokens, t.OutputTokens, t.ReasoningOutputTokens}
	}
	return &wireUsage{of(u.Turn), of(u.Thread)}
}

func changeOf(c Change) wireChange {
	w := wireChange{Path: showPath(c.Path), Kind: c.Kind, By: c.Origin}
	if c.From != "" {
		w.From = showPath(c.From)
	}
	if c.Lines != nil {
		w.Added, w.Removed = &c.Lines.Added, &c.Lines.Removed
	}
	return w
}

func commandOf(c turnlog.Command) wireCommand {
	w := wireCommand{ID: c.ID, Command: c.Shown, Cwd: c.Cwd, ApprovedBy: turnlog.Show(string(c.ApprovedBy), maxName)}
	if c.Exit != nil {
		w.ExitCode, w.DurationMS = &c.Exit.Code, new(c.Exit.Duration.Milliseconds())
	}
	return w
}
