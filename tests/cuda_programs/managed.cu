// Managed memory: a list that the host builds and a kernel walks, without a copy.
#include "check.h"

struct Node {
    int value;
    Node *next;
};

__managed__ int longest;

__global__ void walk(const Node *const *heads, int *sums, int lists)
{
    const int i = threadIdx.x;
    if (i >= lists)
        return;
    int sum = 0, length = 0;
    for (const Node *node = heads[i]; node; node = node->next) {
        sum += node->value;
        length++;
    }
    sums[i] = sum;
    atomicMax(&longest, length);
}

int main()
{
    const int lists = 20;
    Node **heads;
    int *sums, wrong = 0;
    CHECK(cudaMallocManaged(&heads, lists * sizeof(Node *)));
    CHECK(cudaMallocManaged(&sums, lists * sizeof(int)));
    for (int i = 0; i < lists; i++) {
        heads[i] = nullptr;
        for (int j = 0; j < i; j++) {
            Node *node;
            CHECK(cudaMallocManaged(&node, sizeof(Node)));
            *node = {j, heads[i]};
            heads[i] = node;
        }
    }
    longest = 0;
    walk<<<1, 32>>>(heads, sums, lists);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < lists; i++) {
        wrong += sums[i] != i * (i - 1) / 2;
        for (Node *node = heads[i], *next; node; node = next) {
            next = node->next;
            CHECK(cudaFree(node));
        }
    }
    printf("managed: %d wrong, the longest list has %d\n", wrong, longest);
    CHECK(cudaFree(heads));
    CHECK(cudaFree(sums));
    return wrong != 0;
}
