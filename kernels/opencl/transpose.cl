// y = xᵀ by tiles that go through local memory, so that both sides are read and written in rows.
__kernel void transpose(const index height, const index width, BUFFER(const real, x),
                        BUFFER(real, y)) {
    OFFSET(x);
    OFFSET(y);
    __local real tile[TILE][TILE + 1]; // the odd width spreads a column over the memory banks
    const index column = get_local_id(0), row = get_local_id(1);
    const index left = get_group_id(0) * TILE, top = get_group_id(1) * TILE;
    if (top + row < height && left + column < width)
        tile[row][column] = x[(top + row) * width + left + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (left + row < width && top + column < height)
        y[(left + row) * height + top + column] = tile[column][row];
}
