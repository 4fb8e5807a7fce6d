package dynamoguard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/pawl-lock/pawl/pkg/fence"
)

// Claim has an item see the tokens and changes nothing else. A new holder that is
// to read the item, decide, and write, claims it first: until then a write of the
// holder before it is still accepted, and would change what was read. Read with
// ConsistentRead afterwards.
//
// It takes one request, or two if there is no such item yet. That leaves a
// tombstone.
func (g *Guard) Claim(ctx context.Context, h fence.Holding, table string, key Item) error {
	var attribute string
	for attribute = range key {
		break // any part of the key tells whether there is an item
	}
	if attribute == "" {
		return fmt.Errorf("dynamoguard: claim: %w: the key is empty", fence.ErrNotApplied)
	}
	for range attempts { // an item that others create meanwhile stays, unless somebody deletes without a guard
		for _, form := range []struct {
			condition string
			m         mark
		}{{"attribute_exists(#key)", same}, {"attribute_not_exists(#key)", gone}} {
			_, err := g.updateItem(ctx, h, &dynamodb.UpdateItemInput{
				TableName: &table, Key: key, ConditionExpression: &form.condition,
				ExpressionAttributeNames: map[string]string{"#key": attribute},
			}, form.m)
			var failed *types.ConditionalCheckFailedException
			if !errors.As(err, &failed) {
				if err != nil && !fence.Refused(err) {
					err = fmt.Errorf("dynamoguard: claim: %w", err)
				}
				return err
			}
		}
	}
	return fmt.Errorf("dynamoguard: claim: %w: the item comes and goes", fence.ErrNotApplied)
}

// Seen returns what is known of an item, see [Attributes.Seen].
func (g *Guard) Seen(ctx context.Context, table string, key Item) (map[string]fence.Token, error) {
	_, seen, err := g.look(ctx, table, key)
	return seen, err
}

func (g *Guard) look(ctx context.Context, table string, key Item) (Item, map[string]fence.Token, error) {
	if g.Client == nil {
		return nil, nil, errNoClient
	}
	out, err := g.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, nil, fmt.Errorf("dynamoguard: %s: %w", resource(&table, key), err)
	}
	seen, err := g.Attributes.Seen(out.Item)
	if err != nil {
		err = fmt.Errorf("dynamoguard: %s: %w", resource(&table, key), err)
	}
	return out.Item, seen, err
}

// Reset has an item take tokens from those of the holding on, and binds it to the
// declared locks, whatever was seen before. It repairs what a wrong token has shut,
// one that no grant had. It is for an operator: a holder that was replaced is
// accepted again if its token is not below the new one, so take that of a grant
// made now. It fails with [fence.ErrNotApplied] if the item is changed meanwhile.
func (g *Guard) Reset(ctx context.Context, h fence.Holding, table string, key Item) error {
	c, err := g.claim(h, resource(&table, key))
	if err != nil {
		return g.Observer.See(ctx, err)
	}
	item, _, err := g.look(ctx, table, key)
	if err != nil {
		return err
	}
	in := &dynamodb.UpdateItemInput{
		TableName: &table, Key: key,
		ConditionExpression:       aws.String("attribute_not_exists(#write)"),
		UpdateExpression:          aws.String("SET #write = :write"),
		ExpressionAttributeNames:  map[string]string{"#write": c.a.write()},
		ExpressionAttributeValues: Item{":write": text(c.id)},
	}
	if before := item[c.a.write()]; before != nil {
		*in.ConditionExpression, in.ExpressionAttributeValues[":before"] = "#write = :before", before
	}
	stamped, err := c.stamped(nil, nil, len(item) == 0)
	if err != nil {
		return err
	}
	delete(stamped, c.a.write())
	n := 0
	for name, value := range stamped {
		placeholder := fmt.Sprintf("a%d", n)
		n++
		in.ExpressionAttributeNames["#"+placeholder], in.ExpressionAttributeValues[":"+placeholder] = name, value
		*in.UpdateExpression += fmt.Sprintf(", #%s = :%s", placeholder, placeholder)
	}
	verb := " REMOVE "
	for name := range item {
		if stamped[name] == nil && c.a.isToken(name) {
			placeholder := fmt.Sprintf("#a%d", n)
			n++
			in.ExpressionAttributeNames[placeholder] = name
			*in.UpdateExpression += verb + placeholder
			verb = ", "
		}
	}
	if _, err := g.Client.UpdateItem(ctx, in); err != nil {
		var failed *types.ConditionalCheckFailedException
		if errors.As(err, &failed) {
			err = fmt.Errorf("%w: %w", fence.ErrNotApplied, err)
		}
		return fmt.Errorf("dynamoguard: reset %s: %w", resource(&table, key), err)
	}
	return nil
}

// Prune deletes the tombstones that a scan finds whose last write was made before a
// time, and returns how many these were. It is safe if no holder that was replaced
// before that time is still to write: a month is a good choice, where no process
// sleeps for longer. The scan is the caller's: the table, a filter, a segment.
func (g *Guard) Prune(ctx context.Context, scan *dynamodb.ScanInput, before time.Time) (items int, err error) {
	fail := func(err error) (int, error) {
		return items, fmt.Errorf("dynamoguard: prune %s: %w", aws.ToString(scan.TableName), err)
	}
	keys, err := g.keys(ctx, scan.TableName)
	if err != nil {
		return fail(err)
	}
	for pages := dynamodb.NewScanPaginator(g.Client, scan); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fail(err)
		}
		for _, item := range page.Items {
			id, ok := item[g.Attributes.write()].(*types.AttributeValueMemberS)
			if !ok || !g.Attributes.Absent(item) {
				continue
			}
			if at, ok := writtenAt(id.Value); !ok || !at.Before(before) {
				continue
			}
			key := make(Item)
			for _, name := range keys {
				key[name] = item[name]
			}
			_, err := g.Client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
				TableName: scan.TableName, Key: key,
				ConditionExpression:       aws.String("#write = :write"),
				ExpressionAttributeNames:  map[string]string{"#write": g.Attributes.write()},
				ExpressionAttributeValues: Item{":write": id},
			})
			var failed *types.ConditionalCheckFailedException
			switch {
			case err == nil:
				items++
			case !errors.As(err, &failed): // or somebody has written meanwhile
				return fail(err)
			}
		}
	}
	return items, nil
}
