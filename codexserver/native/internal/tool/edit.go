package tool

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
)

func (t *Turn) edit(ctx context.Context, call Call) (Result, error) {
	var r replacement
	if err := fileArguments(call, &r, "path, old, new, all", "path", "old", "new"); err != nil {
		return Result{Output: err.Error()}, nil
	}
	return t.change(ctx, call, r.Path, func(before *string) (string, error) {
		if before == nil {
			return "", t.missing(r.Path)
		}
		if err := isText(r.Path, *before); err != nil {
			return "", err
		}
		return r.apply(*before)
	})
}

func (t *Turn) write(ctx context.Context, call Call) (Result, error) {
	var args struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	if err := fileArguments(call, &args, "path, content", "path", "content"); err != nil {
		return Result{Output: err.Error()}, nil
	}
	return t.change(ctx, call, args.Path, func(before *string) (string, error) {
		switch {
		case strings.ContainsRune(args.Content, 0):
			return "", &fault{what: "content has a NUL byte, so it is not text",
				next: "make such a file with a program, through shell."}
		case before == nil:
			return args.Content, nil
		case *before == args.Content:
			return "", &fault{what: args.Path + " has this content already; nothing was changed"}
		}
		switch seen, fresh := t.box.knows(t.known(args.Path), *before); {
		case !seen:
			return "", &fault{what: args.Path + " exists, and you have not read it",
				next: "read it first and write it then, or change a part of it with edit."}
		case !fresh:
			return "", &fault{what: args.Path + " has changed since you read it; nothing was written",
				next: "read it again, then write it, or change a part of it with edit."}
		}
		return args.Content, nil
	})
}

// change changes one file as a patch does, if the policy and the user allow it. What the answer to
// a mistake shows of files is what a call that reads would show without a question.
func (t *Turn) change(
	ctx context.Context, call Call, path string, edit func(before *string) (string, error),
) (Result, error) {
	work, refusal := t.work(call.Name, "rejected: ")
	if refusal != "" {
		return Result{Output: refusal}, nil
	}
	var before, after string
	roots, err := t.roots()
	if err != nil {
		return Result{Output: "rejected: " + err.Error()}, nil
	}
	_, look := t.judgeLook(false)
	shows := look != nil
	if !shows {
		// The file is read as for any patch. An answer tells whether it has a text, so it must be
		// one of those that the model works on.
		look = unconfined
		probe, err := patch.Edit(work, t.Cwd, path, func(*string) (string, error) { return "", nil })
		if err == nil && !probe.Within(append(roots.Paths, work.Real)) {
			return Result{Output: "rejected: files outside of the working folder may not be read without a question " +
				"here\nNext: use shell, so that the user is asked."}, nil
		}
	}
	var plan *patch.Plan
	err = look(func() (err error) {
		plan, err = patch.Edit(work, t.Cwd, path, func(content *string) (string, error) {
			if content != nil {
				before = *content
			}
			after, err = edit(content)
			return after, err
		})
		return t.explain(path, err)
	})
	var mistake *fault
	switch {
	case errors.As(err, &mistake):
		return Result{Output: mistake.text(shows)}, nil
	case err != nil:
		return Result{Output: strings.ToValidUTF8("nothing was changed: "+err.Error(), "\uFFFD")}, nil
	}
	a := application{
		turn: t, id: call.ID, dir: t.Cwd, plan: plan, plain: true,
		text:    fmt.Sprintf("%s %s\n%s", call.Name, path, patch.Hunks(before, after)),
		applied: func() { t.box.sees(t.known(path), after) },
	}
	output, err := a.decide(ctx)
	if after != "" && !strings.HasSuffix(after, "\n") && strings.HasPrefix(output, "Success") {
		output += "\nThe file does not end with a newline.\nNext: unless that is intended, call " + call.Name +
			" again with a newline at the end."
	}
	return Result{Output: output}, err
}

// maxSeen is how many files a conversation remembers.
const maxSeen = 10_000

// sees remembers that the model knows the content of a file.
func (b *Toolbox) sees(path, content string) {
	if len(b.seen) >= maxSeen {
		clear(b.seen)
	}
	b.seen[path] = sha256.Sum256([]byte(content))
}

// knows reports whether the model has seen a file, and whether that was its content.
func (b *Toolbox) knows(path, content string) (seen, fresh bool) {
	sum, seen := b.seen[path]
	return seen, sum == sha256.Sum256([]byte(content))
}
