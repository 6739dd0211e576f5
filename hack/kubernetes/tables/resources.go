package main

import (
	"path/filepath"
	"strings"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type resourceEntry struct {
	Group        string             `json:"group"`
	Version      string             `json:"version"`
	Plural       string             `json:"plural"`
	Singular     string             `json:"singular"`
	Kind         string             `json:"kind"`
	Namespaced   bool               `json:"namespaced"`
	Verbs        []string           `json:"verbs"`
	ShortNames   []string           `json:"shortNames"`
	Categories   []string           `json:"categories"`
	StorageHash  string             `json:"storageHash"`
	Subresources []subresourceEntry `json:"subresources"`
}

type subresourceEntry struct {
	Name    string   `json:"name"`
	Group   string   `json:"group"`
	Version string   `json:"version"`
	Kind    string   `json:"kind"`
	Verbs   []string `json:"verbs"`
}

// resourceTable lists the resources of the kinds, groups in the order of discovery, one per line.
func resourceTable(api string) []byte {
	var aggregated struct {
		Items []struct {
			Metadata meta.ObjectMeta
		}
	}
	readJSON(filepath.Join(api, "discovery", "aggregated_v2.json"), &aggregated)
	groups := []string{""}
	for _, item := range aggregated.Items {
		groups = append(groups, item.Metadata.Name)
	}
	var lines []string
	for _, group := range groups {
		// The order of a group's versions is preference: the newer first.
		for i := len(kinds) - 1; i >= 0; i-- {
			if k := kinds[i]; k.group == group {
				for _, entry := range resourcesOf(api, k.group, k.version, k.names) {
					lines = append(lines, string(compact(entry)))
				}
			}
		}
	}
	return []byte("[\n" + strings.Join(lines, ",\n") + "\n]\n")
}

func resourcesOf(api, group, version string, names []string) []resourceEntry {
	file := "apis__" + group + "__" + version + ".json"
	if group == "" {
		file = "api__" + version + ".json"
	}
	var list meta.APIResourceList
	readJSON(filepath.Join(api, "discovery", file), &list)
	var entries []resourceEntry
	for _, found := range list.APIResources {
		plural, sub, isSub := strings.Cut(found.Name, "/")
		if isSub {
			for i := range entries {
				if entries[i].Plural == plural {
					entries[i].Subresources = append(entries[i].Subresources, subresource(found, sub, group, version))
				}
			}
			continue
		}
		for _, name := range names {
			if found.Kind == name {
				entries = append(entries, resourceEntry{
					Group: group, Version: version, Plural: plural, Singular: found.SingularName, Kind: found.Kind,
					Namespaced: found.Namespaced, Verbs: found.Verbs, ShortNames: orEmpty(found.ShortNames),
					Categories: orEmpty(found.Categories), StorageHash: found.StorageVersionHash,
					Subresources: []subresourceEntry{},
				})
			}
		}
	}
	return entries
}

func subresource(found meta.APIResource, name, group, version string) subresourceEntry {
	if found.Version != "" {
		group, version = found.Group, found.Version
	}
	return subresourceEntry{Name: name, Group: group, Version: version, Kind: found.Kind, Verbs: found.Verbs}
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
