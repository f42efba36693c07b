package git

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// compare finds the changes since the look, and returns at most max bytes of their diff.
func (l *look) compare(ctx context.Context, max int) (diff string, err error) {
	if l.after, err = l.see(ctx); err != nil {
		return "", err
	}
	changed := l.changed()
	present, err := l.split(&l.after, func(name string) bool {
		return !changed[name] && l.before.others[name] == other{} || readable(l.path(name))
	})
	if err != nil {
		return "", err
	}
	var sections map[string]string
	if len(changed) > 0 {
		present = slices.DeleteFunc(present, func(name string) bool { return !changed[name] })
		if sections, err = l.compareStored(ctx, changed, present); err != nil {
			return "", err
		}
	}
	others := l.compareOthers()
	l.changes = slices.DeleteFunc(l.changes, func(c Change) bool { return others[c.Path].Kind != "" })
	l.changes = slices.AppendSeq(l.changes, maps.Values(others))
	return l.join(sections, max), nil
}

// changed returns the files that may have changed, and adds them to those that were seen after. The times of a file say so,
// also those of one of which git does not say it: it compares them in seconds, and what it would store.
func (l *look) changed() map[string]bool {
	changed, real := map[string]bool{}, map[string]bool{}
	for name := range l.after.seen {
		if _, differed := l.before.seen[name]; !differed {
			changed[name] = true
		}
	}
	for name, before := range l.tracked {
		if now := l.nowIn(name, real); now.is(modeFile) && now != before {
			changed[name], l.after.seen[name] = true, now
		}
	}
	for name, before := range l.before.seen {
		now, seen := l.after.seen[name]
		if !seen {
			now = l.nowIn(name, real)
			l.after.seen[name] = now
		}
		if now != before || before.is(modeFolder) || before.changed >= l.since.UnixNano() && !l.same(name) {
			changed[name] = true
		}
	}
	return changed
}

// compareStored compares what changed files were with what is present. It returns no sections if git cannot make them.
func (l *look) compareStored(ctx context.Context, changed map[string]bool, present []string) (sections map[string]string, err error) {
	var before []string
	for name, s := range l.before.seen {
		_, isOther := l.before.others[name]
		isModule := s.is(modeFolder) && slices.Contains(l.modules, name)
		if (changed[name] || gives(name)) && !isOther && !isModule {
			before = append(before, name)
		}
	}
	if err = l.restore(ctx, before); err == nil {
		err = l.list(ctx)
	}
	if err != nil {
		return nil, err
	}
	was := map[string]entry{}
	for line := range strings.SplitSeq(l.listed, "\x00") {
		head, name, _ := strings.Cut(line, "\t")
		if _, isOther := l.after.others[name]; changed[name] && !isOther {
			fields := strings.Fields(head)
			was[name] = entry{fields[1], fields[2]}
		}
	}
	tree, err := l.writeTree(was)
	if err == nil {
		err = l.store(ctx, was, present)
	}
	if err != nil {
		return nil, err
	}
	if sections, err = l.diffIndex(ctx, tree); err == nil {
		err = l.markConverted(ctx, present, sections)
	}
	return sections, err
}

// afterIndex is the index that has the changed files as they are now.
const afterIndex = "after"

// maxNames bounds the bytes of what git gets as arguments.
const maxNames = 100 << 10

// store stores files as they are. What they were decides of some how git does it.
func (l *look) store(ctx context.Context, was map[string]entry, present []string) error {
	var args []string
	var lines strings.Builder
	for _, name := range present {
		if e, ok := was[name]; ok {
			args = append(args, "--cacheinfo", e.mode+","+e.id+","+name)
			lines.WriteString(e.mode + " " + e.id + "\t" + name + "\x00")
		}
	}
	if lines.Len() > maxNames {
		args = nil
		if _, err := l.git(ctx, call{index: afterIndex, stdin: lines.String()}, "update-index", "-z", "--index-info"); err != nil {
			return err
		}
	}
	if len(present) == 0 {
		return nil
	}
	args = slices.Concat([]string{"update-index", "--add", "--remove", "--replace"}, args, []string{"-z", "--stdin"})
	_, err := l.git(ctx, call{index: afterIndex, options: onePack, stdin: zeros(present)}, args...)
	return err
}

// compareOthers returns the changes of what git does not store.
func (l *look) compareOthers() map[string]Change {
	changes, all := map[string]Change{}, maps.Clone(l.before.others)
	maps.Copy(all, l.after.others)
	for name := range all {
		before, after := l.before.others[name], l.after.others[name]
		if before == after {
			continue
		}
		c := Change{Path: name, Kind: Update, Why: before.why}
		if after.why != "" {
			c.Why = after.why
		}
		isFolder := strings.HasSuffix(name, "/")
		now := l.now(name)
		switch {
		case before.why == "" && (isFolder || l.isNew(name)):
			c.Kind = Add
		case after.why == "" && (isFolder || !now.exists() || now.is(modeFolder)):
			c.Kind = Delete
		}
		changes[name] = c
	}
	return changes
}

// isNew reports whether there was no such file at the look.
func (l *look) isNew(name string) bool {
	_, seen := l.after.seen[name]
	return !l.before.seen[name].exists() && (l.after.new[name] || !seen)
}
