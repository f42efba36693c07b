package turn

import (
	"maps"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// failures are the patches that were to be applied and were not, unless the question was asked again or a later patch
// made up for it. A turn with them may be completed.
type failures struct {
	open map[string][]string // the paths of those that have begun, by call
	list []failure
}

type failure struct {
	call, why string
	paths     []string
}

// begin records that a patch begins, which one that failed may do again.
func (f *failures) begin(m protocol.PatchApplyBegin) {
	if f.open == nil {
		f.open = map[string][]string{}
	}
	f.open[m.CallID] = slices.Sorted(maps.Keys(m.Changes))
	f.forget(m.CallID)
}

// end records how a patch ends. One that was refused is among the refusals. Dropped counts those that are no longer
// kept.
func (f *failures) end(m protocol.PatchApplyEnd, dropped *int) {
	paths := f.open[m.CallID]
	delete(f.open, m.CallID)
	switch {
	case m.Success:
		f.list = slices.DeleteFunc(f.list, func(old failure) bool {
			return !slices.ContainsFunc(old.paths, func(path string) bool { return !slices.Contains(paths, path) })
		})
	case m.Stderr != protocol.ExecDeclined && len(paths) > 0:
		why := plain.Short(strings.TrimSpace(m.Stderr), plain.MaxWords)
		f.list = keep(append(f.list, failure{m.CallID, why, paths}), dropped)
	}
}

// forget drops what failed of a call whose question says how it went on.
func (f *failures) forget(call string) {
	f.list = slices.DeleteFunc(f.list, func(old failure) bool { return old.call == call })
}

// refusals returns them for a result.
func (f *failures) refusals() (all []protocol.Refusal) {
	for _, patch := range f.list {
		all = append(all, protocol.Refusal{
			Kind: protocol.RefusedFailed, What: plain.Paths(patch.paths), Why: patch.why, By: "engine",
		})
	}
	return all
}
