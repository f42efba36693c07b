package mcptool

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
)

// Resources returns the diffs, transcripts and outputs of threads as MCP resources. They are read page
// by page, as with the tool codex-show.
type Resources struct {
	table *Table
}

// Resources returns the resources of the table's server.
func (t *Table) Resources() Resources { return Resources{t} }

// metaPage is the member of _meta with the position of a page in the whole.
const metaPage = "io.github.codexmcp/page"

// maxListed is how many threads a list of resources has at most.
const maxListed = 50

// forms are the kinds of resources.
var forms = []struct {
	what               view
	name, path, format string
	words              string
}{
	{diffView, "diff", "diff", "text/x-diff", "What the turns of a conversation changed."},
	{transcriptView, "transcript", "transcript", "text/plain", "What was said and done in a conversation."},
	{outputView, "output", "commands/{command}/output", "text/plain", "What a command printed; command is its id in commands."},
}

// Templates returns the kinds of resources.
func (r Resources) Templates() []mcptypes.ResourceTemplate {
	var list []mcptypes.ResourceTemplate
	for _, f := range forms {
		list = append(list, mcptypes.ResourceTemplate{
			Name: f.name, Description: &f.words, MimeType: &f.format, URITemplate: "codex://threads/{threadId}/" + f.path + "{?offset}",
		})
	}
	return list
}

// List returns the diffs and transcripts of the newest threads that the client holds.
func (r Resources) List(threads *thread.Share) []mcptypes.Resource {
	ids := threads.IDs()
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(b, a) }) // ids begin with their time
	list := []mcptypes.Resource{}
	for _, id := range ids[:min(len(ids), maxListed)] {
		for _, f := range forms[:2] {
			list = append(list, mcptypes.Resource{
				Name: f.name + " of " + id, MimeType: &f.format, URI: passage{thread: id, what: f.what}.uri(),
			})
		}
	}
	return list
}

// uri returns the URI of a passage.
func (at passage) uri() string {
	path := string(at.what)
	if at.what == outputView {
		path = "commands/" + strconv.Itoa(at.command) + "/output"
	}
	uri := "codex://threads/" + url.PathEscape(at.thread) + "/" + path
	if at.offset > 0 {
		uri += "?offset=" + strconv.FormatInt(at.offset, 10)
	}
	return uri
}

// parseURI parses a URI. It returns false if no resource can have it.
func parseURI(uri string) (at passage, ok bool) {
	rest, ok := strings.CutPrefix(uri, "codex://threads/")
	if !ok {
		return at, false
	}
	rest, query, hasQuery := strings.Cut(rest, "?")
	if hasQuery {
		number, isOffset := strings.CutPrefix(query, "offset=")
		if at.offset, ok = parseNumber(number); !isOffset || !ok {
			return at, false
		}
	}
	words := strings.Split(rest, "/")
	id, err := url.PathUnescape(words[0])
	if err != nil || id == "" {
		return at, false
	}
	at.thread = thread.CanonicalID(id)
	switch {
	case len(words) == 2 && (words[1] == string(diffView) || words[1] == string(transcriptView)):
		at.what = view(words[1])
		return at, true
	case len(words) == 4 && words[1] == "commands" && words[3] == "output":
		n, ok := parseNumber(words[2])
		at.what, at.command = outputView, int(n)
		return at, ok && n > 0 && n <= 1<<31-1
	}
	return at, false
}

// parseNumber parses a number that has only digits.
func parseNumber(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && strings.Trim(s, "0123456789") == ""
}

// NoResourceError reports that a resource does not exist.
type NoResourceError struct{ Reason string }

// Error implements error.
func (e *NoResourceError) Error() string { return e.Reason }

// Read returns the page at a URI. If there are more pages, a second part names the next.
// The error is a [*NoResourceError] if the resource does not exist.
func (r Resources) Read(ctx context.Context, threads *thread.Share, uri string) ([]*mcptypes.TextResourceContents, error) {
	at, ok := parseURI(uri)
	if !ok {
		return nil, &NoResourceError{"not the address of a resource of this server"}
	}
	p, err := r.table.read(ctx, threads, at, r.table.room(0).most)
	var wrong *turnlog.RangeError
	var unknown unknownThread
	switch {
	case errors.As(err, &wrong), errors.As(err, &unknown):
		return nil, &NoResourceError{err.Error()}
	case err != nil:
		return nil, err
	}
	where, err := json.Marshal(struct {
		Offset int64  `json:"offset"`
		Next   int64  `json:"next,omitzero"`
		Total  int64  `json:"total"`
		Cut    int64  `json:"cut,omitzero"`
		Note   string `json:"note,omitzero"`
	}{p.Offset, p.Next, p.Total, p.Cut, p.Note})
	if err != nil {
		return nil, err
	}
	format := "text/plain"
	if at.what == diffView {
		format = "text/x-diff"
	}
	contents := []*mcptypes.TextResourceContents{{
		Meta: map[string]stdjson.RawMessage{metaPage: where}, MimeType: &format, Text: p.Content, URI: uri,
	}}
	if p.Next > 0 {
		next := at
		next.offset = p.Next
		contents = append(contents, &mcptypes.TextResourceContents{
			MimeType: new("text/plain"), URI: next.uri(),
			Text: fmt.Sprintf("[%d more bytes: read %s]", p.Total-p.Next, next.uri()),
		})
	}
	return contents, nil
}
