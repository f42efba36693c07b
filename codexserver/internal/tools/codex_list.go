package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/mcptypes"
)

var listTool = &tool{
	name: "codex-list", title: "Codex List", short: true, hints: &reads,
	description: "List conversations, the newest first, with the threadId for codex-reply. " +
		"status and doing: the last turn here.",
	purpose:   "find past conversations.",
	offered:   can[engine.Library],
	arguments: func() arguments { return new(listArguments) },
}

type listArguments struct {
	Search   string `json:"search" about:"Text in the title or first message."`
	Cwd      string `json:"cwd" about:"Those in or below this folder. Default: all, those of the folder to work in first."`
	PageSize int    `json:"pageSize" max:"50" about:"Default: 10."`
	Cursor   string `json:"cursor" about:"nextCursor of the last page."`
}

const (
	defaultListed = 10
	everywhere    = "*"  // as cwd
	maxTitle      = 120  // characters of a title, one of them for the sign that it is cut
	maxLooked     = 2000 // conversations that a search looks at in one call
	lookPage      = 500  // of these, how many at a time
)

type listRow struct {
	ThreadID  string              `json:"threadId"`
	Preview   string              `json:"preview"` // the title, or else the beginning of the first message
	Cwd       string              `json:"cwd,omitzero"`
	Timestamp *string             `json:"timestamp,omitzero"`
	Status    protocol.TurnStatus `json:"status,omitzero"`
	Doing     string              `json:"doing,omitzero"`
	Origin    string              `json:"origin,omitzero"` // the program that began it
	OpenIn    string              `json:"openIn,omitzero"` // who has it open
}

// list is the result.
type list struct {
	Conversations []listRow `json:"conversations"`
	NextCursor    *string   `json:"nextCursor,omitzero"`
}

func (a *listArguments) run(ctx context.Context, c *Call) (*mcptypes.CallToolResult, error) {
	library := c.table.engine.(engine.Library)
	if a.Cwd == everywhere {
		a.Cwd = ""
	}
	page, err := a.page(ctx, library)
	if errors.Is(err, engine.ErrCursor) {
		err = fmt.Errorf("argument /cursor: %w", err)
	}
	if err != nil {
		return nil, err
	}
	if page.NextCursor != nil { // an engine may give one on the last page too
		next, err := library.List(ctx, protocol.ListConversationsParams{PageSize: new(1), Cursor: *page.NextCursor})
		if err == nil && len(next.Items) == 0 && next.NextCursor == nil {
			page.NextCursor = nil
		}
	}
	out := list{[]listRow{}, page.NextCursor}
	if here, err := engine.Abs(ctx, c.folder(ctx)); err == nil {
		here = paths.Real(here)
		slices.SortStableFunc(page.Items, func(a, b protocol.ConversationSummary) int {
			return cmp.Compare(elsewhere(a.Cwd, here), elsewhere(b.Cwd, here))
		})
	}
	for _, item := range page.Items {
		title := cmp.Or(strings.TrimSpace(item.Title), item.Preview)
		row := listRow{
			ThreadID: item.ConversationID, Preview: plain.OneLine(title, maxTitle-1),
			Cwd: plain.OneLine(item.Cwd, 0), Timestamp: item.Timestamp,
			Origin: plain.OneLine(item.Origin, maxTitle), OpenIn: plain.OneLine(item.Holder, maxTitle),
		}
		if t := c.Turns.of(thread.CanonicalID(item.ConversationID)); t != nil {
			s := t.State()
			row.Status, row.Doing = s.Status, s.Words()
			if s.Status.Ended() {
				row.Doing = plain.Brief(t.Result().Content)
				if changed := pathsOf(t.Result().Changes); changed != "" {
					row.Doing += "; changed: " + changed
				}
			}
		}
		if item.News != "" {
			row.Doing = strings.TrimPrefix(row.Doing+"; "+plain.OneLine(item.News, plain.MaxWords), "; ")
		}
		out.Conversations = append(out.Conversations, row)
	}
	return structured(out, out.words()), nil
}

// elsewhere returns 1 for a folder that is neither here nor below, else 0.
func elsewhere(folder, here string) int {
	if folder != "" && paths.Below(paths.Real(folder), here) {
		return 0
	}
	return 1
}

// words returns the list as text, a line for each conversation.
func (l *list) words() string {
	var lines []string
	for _, r := range l.Conversations {
		parts := []string{r.ThreadID, string(r.Status), r.Doing, r.Cwd, r.Preview}
		parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
		lines = append(lines, strings.Join(parts, " · "))
	}
	switch {
	case l.NextCursor != nil:
		lines = append(lines, "More: cursor "+plain.Short(*l.NextCursor, plain.MaxWords))
	case len(lines) == 0:
		lines = append(lines, "No conversation.")
	}
	return strings.Join(lines, "\n")
}

// page returns the page that the arguments name. Not every engine can search, and those that
// can do it in different ways, so page looks through the engine's pages. If the page is not
// full after maxLooked conversations, its cursor continues the search.
func (a *listArguments) page(ctx context.Context, library engine.Library) (*protocol.ListConversationsResult, error) {
	size := cmp.Or(a.PageSize, defaultListed)
	if a.Search == "" && a.Cwd == "" {
		return library.List(ctx, protocol.ListConversationsParams{PageSize: &size, Cursor: a.Cursor})
	}
	matches, err := a.matcher(ctx)
	if err != nil {
		return nil, err
	}
	found := &protocol.ListConversationsResult{NextCursor: &a.Cursor}
	for looked := 0; looked < maxLooked && found.NextCursor != nil; {
		cursor := *found.NextCursor
		page, err := library.List(ctx, protocol.ListConversationsParams{PageSize: new(lookPage), Cursor: cursor})
		if err != nil {
			return nil, err
		}
		for i, item := range page.Items {
			if !matches(&item) {
				continue
			}
			found.Items = append(found.Items, item)
			if len(found.Items) == size { // a page that ends here has the cursor of the next
				page, err = library.List(ctx, protocol.ListConversationsParams{PageSize: new(i + 1), Cursor: cursor})
				if err != nil {
					return nil, err
				}
				found.NextCursor = page.NextCursor
				return found, nil
			}
		}
		looked += len(page.Items)
		found.NextCursor = page.NextCursor
		if len(page.Items) == 0 || found.NextCursor != nil && *found.NextCursor == cursor {
			found.NextCursor = nil
		}
	}
	return found, nil
}

// matcher returns a function that reports whether a conversation is one that the arguments
// ask for.
func (a *listArguments) matcher(ctx context.Context) (func(*protocol.ConversationSummary) bool, error) {
	search, folder := strings.ToLower(a.Search), ""
	if a.Cwd != "" {
		abs, err := engine.Abs(ctx, a.Cwd)
		if err != nil {
			return nil, fmt.Errorf("argument /cwd: %w", err)
		}
		folder = paths.Real(abs)
	}
	here := map[string]bool{} // by the folders of conversations, of which many are the same
	return func(c *protocol.ConversationSummary) bool {
		same, known := here[c.Cwd]
		if !known {
			same = folder == "" || c.Cwd != "" && paths.Below(paths.Real(c.Cwd), folder)
			here[c.Cwd] = same
		}
		title, preview := strings.ToLower(c.Title), strings.ToLower(c.Preview)
		return same && (strings.Contains(title, search) || strings.Contains(preview, search))
	}, nil
}
