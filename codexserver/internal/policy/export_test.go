package policy

import "slices"

// ListedOptions returns the long options that are known to be safe, by the words of the
// command before them, each with or without a value as listed.
func ListedOptions() map[string][]string {
	listed := map[string][]string{}
	for command, o := range map[string]options{
		"find": findOptions.options(), "rg": ripgrepOptions.options(), "git status": gitStatusOptions.options(), "git diff": gitDiffOptions.options(),
		"git log": gitLogOptions.options(), "git branch": gitBranchOptions.options(),
	} {
		for name, f := range o.long {
			if f&alone != 0 {
				listed[command] = append(listed[command], name)
			}
			if f&valued != 0 {
				listed[command] = append(listed[command], name+"=1", name+"=refname")
			}
		}
	}
	for _, options := range listed {
		slices.Sort(options)
	}
	return listed
}
