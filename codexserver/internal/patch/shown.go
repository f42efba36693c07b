package patch

import (
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Why some files of a patch deserve attention, as [Plan.Why] and [Announced.Why] say.
const (
	whyLink    = "a symbolic link, and what it leads to stays"
	whyNotText = "what is lost is not text"
)

// whyOver says that a file moves over another one.
func whyOver(path string) string { return "it moves over " + elicit.ShowCommand([]string{path}) }

// addWhy adds why a file deserves attention.
func addWhy(all map[string]string, path, why string) {
	if was := all[path]; was != "" {
		why = was + "; " + why
	}
	all[path] = why
}

// Changes returns the plan's changes by absolute path. A file that moves is shown once, by its old path. If it moves over
// another one, the old path is shown as deleted, and what happens to the other file as its change.
func (p *Plan) Changes() map[string]protocol.FileChange {
	changes := make(map[string]protocol.FileChange, len(p.files))
	for _, file := range p.files {
		switch {
		case file.moves(), file.before == nil && file.after == nil:
		case file.given:
			changes[file.shown] = file.change()
		case file.after == nil:
			changes[file.shown] = protocol.FileChange{Delete: &protocol.FileContent{Content: text(file.removed())}}
		case file.before == nil:
			changes[file.shown] = protocol.FileChange{Add: &protocol.FileContent{Content: *file.after}}
		default:
			changes[file.shown] = update(*file.before, *file.after, nil, file.replaces())
		}
	}
	for _, file := range p.files {
		if from := file.from; file.moves() {
			changes[from.shown] = update(*from.before, *file.after, &file.shown, false)
		}
	}
	return changes
}

// removed returns what is lost with a file that is removed: of a symbolic link that alone, as in git.
func (f *plannedFile) removed() string {
	if f.entry.info != nil && f.entry.info.Mode()&fs.ModeSymlink != 0 {
		return f.entry.link
	}
	return *f.before
}

func update(before, after string, movePath *string, replaces bool) protocol.FileChange {
	diff := Hunks(text(before), after)
	return protocol.FileChange{Update: &protocol.FileUpdate{UnifiedDiff: diff, MovePath: movePath, Replaces: replaces}}
}

// text returns what a question can show of a file's content.
func text(content string) string { return strings.ToValidUTF8(content, "\uFFFD") }

// Why returns, by the paths of [Plan.Changes], why files deserve attention whose change alone does not say what is lost.
func (p *Plan) Why() map[string]string {
	why := map[string]string{}
	for _, file := range p.files {
		switch link := file.entry.link != ""; {
		case file.given:
			file.addWhy(why)
		case file.before == nil:
		case file.after == nil && link:
			why[file.shown] = whyLink
		case (file.after == nil || file.replaces()) && !utf8.ValidString(*file.before):
			why[file.shown] = whyNotText
		}
	}
	for _, file := range p.files {
		if from := file.from; from != nil && file.replaces() {
			addWhy(why, from.shown, whyOver(file.shown))
		}
	}
	return why
}
